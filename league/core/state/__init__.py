"""The league's state and the records, commands and events that change it."""
