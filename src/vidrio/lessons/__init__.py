"""The lessons: the worked example and experiments."""
