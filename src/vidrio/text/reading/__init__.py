"""How a text is read: sentences, parts of long ones, what must come through whole, capitals."""
