"""Import and export models in the formats of other programs. Only this package uses the names of these programs."""
