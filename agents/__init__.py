"""Who acts and learns: networks, policies, unrolls, losses, learners. Imports torch and numpy (lz4 in the codec alone)."""
