"""Numbers as text, for the messages of all packages."""
