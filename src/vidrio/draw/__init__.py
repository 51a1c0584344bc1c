"""What `vidrio look` shows, as text, HTML and a notebook. Drawn here, not computed."""
