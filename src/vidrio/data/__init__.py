"""Sentence pairs: read, cleaned, held out. No PyTorch here."""
