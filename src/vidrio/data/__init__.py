"""Sentence pairs: read, cleaned, split, stored, fetched. No PyTorch here."""
