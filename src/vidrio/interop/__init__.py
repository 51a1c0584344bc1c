"""Import and export of other programs' models. Only this package knows other programs' names for things."""
