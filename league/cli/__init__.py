"""The commands of `league`, one file for each group; a command imports everything heavy itself."""
