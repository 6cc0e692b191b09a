"""Central inference: one process decides for the games of many actor hosts."""
