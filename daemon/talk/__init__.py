"""What people ask for in comments, who may, and what they are told."""
