"""The page as static files, with the same Python code, which runs in the browser."""
