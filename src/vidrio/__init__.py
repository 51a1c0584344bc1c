"""Vidrio: a Transformer translator made of glass."""

__version__ = "0.1.0"
