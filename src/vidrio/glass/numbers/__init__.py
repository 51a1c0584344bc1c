"""Its numbers: stages (what each is), trace (all of them at once)."""
