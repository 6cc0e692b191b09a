"""Bots that try moves out on copies of the games."""
