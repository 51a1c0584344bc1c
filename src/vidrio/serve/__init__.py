"""The page in which the translator is made of glass, and the small server behind it."""
