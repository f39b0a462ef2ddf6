"""Overlays of broker processes on this machine: started together, watched over, stopped together."""
