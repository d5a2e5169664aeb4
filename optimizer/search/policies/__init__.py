"""Which node to grow next."""
