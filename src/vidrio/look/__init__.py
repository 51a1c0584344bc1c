"""Presents runs in the terminal and on the page: tables, receipts, effects of changes, and results of checks."""
