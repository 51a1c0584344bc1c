"""Other people's models in, ours out. What other programs call things is known here and nowhere else."""
