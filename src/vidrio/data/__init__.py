"""Reads, cleans and splits sentence pairs. This package does not need PyTorch."""
