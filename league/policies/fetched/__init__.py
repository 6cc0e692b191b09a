"""Policies of other machines, fetched into this user's cache: each file is checked by its digest."""
