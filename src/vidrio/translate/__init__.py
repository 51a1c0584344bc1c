"""Translation: sentences, batches, streams, alignment and confidence."""
