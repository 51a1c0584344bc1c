"""The page as static files: the same Python, run in the browser."""
