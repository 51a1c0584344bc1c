"""Read, clean and split sentence pairs. This package does not need PyTorch."""
