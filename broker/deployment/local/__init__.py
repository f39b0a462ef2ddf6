"""Overlays of broker processes on this machine: commands start, supervise, show and stop them."""
