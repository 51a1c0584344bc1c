"""The paper's maths in plain NumPy: one sentence, no batch, no padding. The truth that the other engines are held to.

paper (the machine), numbers (all of them, by address), proof (each computed again), whatif (the machine changed).
"""
