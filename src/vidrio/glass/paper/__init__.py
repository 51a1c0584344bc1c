"""The maths of the paper: maths, positions, attention, transformer (top to bottom), decoding (step by step)."""
