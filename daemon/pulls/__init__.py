"""Pull requests from the first commit to the last: written, kept up to date, replayed, closed."""
