"""Text processing: tokenizers, sentences, and the parts of a text that a translation must preserve."""
