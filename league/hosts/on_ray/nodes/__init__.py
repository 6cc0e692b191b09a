"""The machines of a cluster: which there are, what fits on them, and where hosts are placed."""
