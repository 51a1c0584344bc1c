"""The version, in a file that imports nothing: every room may name it, and none has to import the package for it."""

__version__ = "0.1.0"
