"""Names of moves: the numbered actions of known games as the field writes them, for engines and for records."""
