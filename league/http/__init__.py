"""The ground of the HTTP servers: addresses, listeners, TLS, tokens, and a server with bounds and deadlines."""
