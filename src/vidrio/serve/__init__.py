"""The server for the page and for LibreTranslate's API."""
