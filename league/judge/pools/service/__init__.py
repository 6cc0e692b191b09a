"""The service of a pool: workers join it by address and token."""
