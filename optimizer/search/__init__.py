"""The tree search and its policies."""
