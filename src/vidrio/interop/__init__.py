"""Import and export models in other programs' formats. Those programs' names are used only in this package."""
