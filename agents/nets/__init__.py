"""Networks: encoders, cores and heads as ordered lists of named blocks, and what their heads state."""
