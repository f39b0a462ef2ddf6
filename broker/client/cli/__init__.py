"""The commands of clients: `mercast pub`, `sub`, `bench` and the live `trace`.

This package imports the client library; the client library does not import it.
"""
