"""A substitute for `safetensors` in the browser, which reads and writes files with NumPy."""


class SafetensorError(Exception):
    """Raised for a damaged file."""
