"""Networks: encoders, cores and heads as ordered lists of named blocks, and the distributions of the heads."""
