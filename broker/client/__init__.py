"""Client library: an asyncio client and a synchronous one. Start with `from broker import connect`."""
