"""Marked-up text and files: what is translated of them, and how the rest comes through whole."""
