"""Contenders: whoever can take part in a match, written as one name and identified by one digest."""
