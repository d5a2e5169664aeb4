"""What a record class can't say: that the names and numbers of a registry agree with each other."""
