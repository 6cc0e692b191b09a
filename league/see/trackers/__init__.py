"""Runs at trackers: wandb, TensorBoard and MLflow."""
