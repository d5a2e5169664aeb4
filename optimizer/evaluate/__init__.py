"""The judge: whether a candidate is correct, and how fast it is."""
