"""What the model sees: histories, their limits, and how one is rebuilt from a ledger."""
