"""The paper's maths in plain NumPy: one sentence, no batch, no padding. The reference for the other engines.

The reference: walk.py, from ids to probabilities; operations.py, each step; machine.py, a model ready to run. The
proof: trace.py, all values of a run by address; cells.py, how each is recomputed; receipts.py, one of them;
checking.py, all. What-ifs: whatif.py.
"""
