"""Overlays as files: TOML, and GT-ITM's alt format."""
