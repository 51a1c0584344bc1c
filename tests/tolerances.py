"""How closely the engines must agree, with the reasons. Never loosen these.

Each tolerance is the largest difference allowed between two numbers of size about 1.
"""

# Two float64 implementations of the same formulas round the last of 16 digits differently, and over a few layers the
# differences add up to about 1e-14. An error in a formula shows in the first digits. 1e-9 is far from both.
FLOAT64 = 1e-9

# The same code and numbers, but summed in another order (a full pass against one step at a time).
SAME_CODE = 1e-12

# The same formulas in float32, which keeps 7 digits, with the rounding of a few layers.
FLOAT32 = 1e-5

# bfloat16 keeps 8 significant bits: each value is off by up to 1/256, and the error grows over the layers.
BFLOAT16 = 0.1
