"""Models: configuration, parameter names and shapes, the format of model folders, and how to find them."""
