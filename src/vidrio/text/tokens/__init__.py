"""Text → tokens → ids, and back."""
