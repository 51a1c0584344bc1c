"""The version, in a separate module, so that any module can import it without importing the package."""

__version__ = "0.1.0"
