"""One training run: what it is asked, its data, its plan, the loop, what it leaves on disk, its end."""
