"""Scoring translations."""
