"""Facts of a game that settings depend on: the record, its statistics, and the random play that measures them."""
