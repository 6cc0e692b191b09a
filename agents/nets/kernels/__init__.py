"""Matrix products, recurrent scans and distributions: plain tensors in and out, whatever the network."""
