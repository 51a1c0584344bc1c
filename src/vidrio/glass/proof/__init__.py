"""Their proof: one number computed again, independently (expressions, recompute), receipts, checking."""
