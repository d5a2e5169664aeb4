"""Schedule spaces that were tried as a whole, and how searches do on them."""
