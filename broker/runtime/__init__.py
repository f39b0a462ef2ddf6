"""Brokers as processes: asyncio drives the core, the same as in simulations, with TCP, a store and admin pages."""
