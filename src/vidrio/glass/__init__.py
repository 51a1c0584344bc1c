"""The paper's maths in plain NumPy: one sentence, no batch, no padding. The truth that the other engines are held to.

Read in this order: maths, positions, attention, transformer (the whole way, top to bottom), decoding (step by step),
stages (what each number is), trace (all of them at once), receipts (one of them, recomputed), whatif (the same machine
with something changed).
"""
