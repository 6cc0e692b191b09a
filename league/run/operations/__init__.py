"""Operations on a running league: their arguments and rules, and the queue that the daemon empties."""
