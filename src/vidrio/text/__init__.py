"""Text processing: tokenizers, sentences, and what must be preserved in a translation."""
