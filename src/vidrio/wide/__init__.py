"""Bulk work on a Ray cluster."""
