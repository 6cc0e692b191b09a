"""How the replicas of a network agree."""
