"""The pure rules of a rating pool: what may happen, what it changes, the ratings, and which pair plays next."""
