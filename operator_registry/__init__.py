"""What to compute and on what: operators, models, hardware, and their differences."""
