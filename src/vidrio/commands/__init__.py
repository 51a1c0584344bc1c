"""The commands, one per file. A command parses options, calls the library and prints the result. Modules that are slow
to import are imported inside functions."""
