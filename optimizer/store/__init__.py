"""What is being searched, kept in a database."""
