"""Kinds of acting: how a network acts while it learns, and as a frozen opponent."""
