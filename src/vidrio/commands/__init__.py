"""The commands, one per file: parse options, call the library, print. Heavy modules are imported inside functions."""
