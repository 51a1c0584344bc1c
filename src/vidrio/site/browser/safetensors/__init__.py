"""A browser substitute for `safetensors` that reads and writes files with NumPy."""


class SafetensorError(Exception):
    """Raised for a damaged file."""
