"""Clients of brokers: an asyncio client and a synchronous one. `from broker import connect` is the way in."""
