"""Who may connect to a broker, and what each client may do: TLS, tokens, certificates and an access list."""
