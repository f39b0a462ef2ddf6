"""Brokers as processes: the unchanged core, driven by asyncio, over TCP, with a store and admin pages."""
