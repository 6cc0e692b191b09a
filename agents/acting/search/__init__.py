"""Tree search over copies of games with a network as its judge, all trees of a batch in lockstep."""
