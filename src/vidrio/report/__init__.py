"""What `vidrio look` shows, as text, HTML and a notebook. Numbers are drawn here, not computed: they are the trace's.

The few that a view adds (cosines, entropies) are in `measures.py`, and the view says how they are made.
"""
