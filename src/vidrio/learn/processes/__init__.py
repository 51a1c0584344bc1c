"""Several processes that learn as one, and which of them makes the data."""
