"""Text → text: sentences, batches, streams, alignment, confidence."""
