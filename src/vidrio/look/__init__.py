"""Runs as data for the terminal and the page: tables, receipts, the effects of changes, the results of checks."""
