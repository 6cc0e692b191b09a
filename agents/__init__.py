"""Acting and learning: networks, policies, unrolls, losses, learners. Imports torch, numpy, and lz4 in the codec."""
