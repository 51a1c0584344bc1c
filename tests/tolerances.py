"""How closely the engines must agree: written down once, with the reason, and never loosened.

Each is the largest difference allowed between two numbers of size about 1.
"""

# Two implementations of the same formulas in float64 round differently in the last of 16 digits, and a few layers add
# such roundings up to some 1e-14. Any slip in a formula shows in the first digits. 1e-9 is far from both.
FLOAT64 = 1e-9

# The same code and the same numbers, but summed in another order (a whole pass against one step at a time).
SAME_CODE = 1e-12

# The same formulas in float32, which keeps 7 digits: some layers of roundings.
FLOAT32 = 1e-5

# bfloat16 keeps 8 bits: each value is off by up to 1/256 of itself, and the layers add that up.
BFLOAT16 = 0.1
