"""Reading, cleaning and splitting of sentence pairs, without PyTorch."""
