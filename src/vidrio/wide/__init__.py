"""Bulk translation on a Ray cluster."""
