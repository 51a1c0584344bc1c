"""The model, batched: its parameters, attention, dropout, loss, and decoding while it learns."""
