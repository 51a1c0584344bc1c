"""Tokenisation: from text to tokens and ids, and back."""
