"""One file a verb: parse, call, print. Heavy things are imported inside the functions that need them."""
