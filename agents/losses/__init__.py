"""Losses and return estimators: pure float32 functions of time-major [T, B] tensors with per-step discounts."""
