"""Matrix products and recurrent scans that networks are built of: plain tensors in and out, no observations."""
