"""The reference implementation: the paper's maths in plain NumPy, one sentence at a time, without padding.

walk.py defines the model from ids to probabilities, operations.py contains the operations, and machine.py runs them
with a model's parameters. trace.py stores all values of a run by address, cells.py defines how each value is
recomputed, receipts.py recomputes a single value, and checking.py recomputes all of them. whatif.py changes a run.
"""
