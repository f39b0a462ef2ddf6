"""Authentication and authorisation at a broker: TLS, tokens, certificates and an access list."""
