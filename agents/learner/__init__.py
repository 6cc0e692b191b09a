"""From unrolls to the next weights: feeding, losses, step backends and the optimizer."""
