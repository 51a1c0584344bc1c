"""One file per command: parse, call, print. Heavy modules are imported inside the functions that need them."""
