"""Population-based training: transplants of weights and hyperparameters."""
