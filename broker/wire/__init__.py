"""The wire format between brokers, and between clients and brokers.

`broker_codec` encodes and decodes messages between brokers, `client_codec` frames between a client and its broker, and
`link_handshake` the frames that open a link. `framing` splits a byte stream into frames. This package imports routing's
messages and nothing else of the brokers.
"""
