"""From unrolls to the next weights: feeding, losses, the step backends and the tail that they share."""
