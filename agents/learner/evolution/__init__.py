"""Evolution strategies: learning from what whole episodes of perturbed weights earn, without gradients."""
