"""Play against policies: the game behind the terminal and the page."""
