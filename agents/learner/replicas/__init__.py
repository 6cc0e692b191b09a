"""Update modes: the ways in which replicas of a network agree."""
