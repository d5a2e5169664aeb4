"""Ways to build and run device code."""
