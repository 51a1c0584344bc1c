"""Publishes the page as static files. The Python code runs in the browser instead of on a server."""
