"""One update: gradients, the optimizer step, replicas."""
