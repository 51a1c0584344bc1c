"""In the browser, this is `safetensors`: reading and writing a file with NumPy."""


class SafetensorError(Exception):
    """A damaged file."""
