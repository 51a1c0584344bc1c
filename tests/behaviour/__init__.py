"""Behaviour cases in .tsv files, grouped by topic, and the rules that judge translations of them. See README.md."""
