"""Code of the user's own: where it lies."""
