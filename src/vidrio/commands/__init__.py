"""The commands, one per file. They parse options, call the library and print. Slow modules are imported in
functions."""
