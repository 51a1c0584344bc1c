"""Text in and out: the tokenizer, sentences, and what must come through a translation whole."""
