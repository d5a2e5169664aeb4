"""A first draft of a hardware's file, from what a machine says of itself."""
