"""A substitute for `safetensors` in the browser. It reads and writes safetensors files with NumPy alone."""


class SafetensorError(Exception):
    """Raised if a file is damaged."""
