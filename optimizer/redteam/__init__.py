"""The red team: hostile candidates of our own, to show that each guard of the judge is needed."""
