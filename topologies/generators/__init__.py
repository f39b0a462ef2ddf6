"""Generators of overlays: flat models, hierarchies and transit-stub, after GT-ITM."""
