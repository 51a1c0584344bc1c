"""What a model is: its sizes and choices, the names of its numbers, its folder, and where to find it."""
