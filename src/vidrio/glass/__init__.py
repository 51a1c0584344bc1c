"""The paper's maths in plain NumPy: one sentence, no batch, no padding. The truth that the other engines are held to.

Read in this order.
  The machine: maths, positions, attention, transformer (the whole way, top to bottom), decoding (step by step).
  Its numbers: stages (what each is), trace (all of them at once), stepwise (every step by itself).
  Their proof: expressions (arithmetic written down), recompute (one number made again, independently), receipts,
  notations (as Python, spreadsheet, LaTeX), checking (many at once), stored (down to the bytes of the file).
  What if: changes (of a machine), whatif (a list of them), comparison (before and after).
"""
