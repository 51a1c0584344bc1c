"""Text → text: engines, attempts, streams of texts, alignment, confidence."""
