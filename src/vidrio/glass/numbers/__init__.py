"""Its numbers: stages (what each is), trace (all of them at once), stepwise (every step by itself)."""
