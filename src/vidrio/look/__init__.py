"""A run as data: what it was, its measures, what a change did, what a check found."""
