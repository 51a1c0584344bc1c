"""The page as static files, with the same Python code running in the browser."""
