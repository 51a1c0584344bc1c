"""In the browser, this is `safetensors`: reading a file, and writing one, with NumPy."""


class SafetensorError(Exception):
    """A file that is damaged."""
