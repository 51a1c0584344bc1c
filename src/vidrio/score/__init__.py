"""Scores for translations."""
