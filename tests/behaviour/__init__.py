"""How a translator behaves: cases by topic in .tsv files, rules that judge them, and the judge. README.md explains."""
