"""The bot's own issues, checks and pull requests beside those that carry kernels."""
