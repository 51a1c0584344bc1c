"""The paper's maths in plain NumPy: one sentence, no batch, no padding. The truth that the other engines are held to.

walk.py, top to bottom: from ids to probabilities. operations.py: each step of it. machine.py: a model ready to run.
trace.py: all its numbers, by address. receipts.py: one of them recomputed. whatif.py: the machine changed.
"""
