"""Candidates from the captured graph of a reference: no language model needed."""
