"""The same weights in CTranslate2: for translating and serving. What it demands is known here and nowhere else."""
