"""How to find better: candidates, proposers, search and the judge."""
