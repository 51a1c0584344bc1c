"""Sentence pairs: reading, cleaning, splitting. Does not use PyTorch."""
