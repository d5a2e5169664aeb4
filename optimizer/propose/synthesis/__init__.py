"""Candidates from the captured graph of a reference: no language model needed."""

from optimizer.propose.synthesis.make import make_proposers

__all__ = ["make_proposers"]
