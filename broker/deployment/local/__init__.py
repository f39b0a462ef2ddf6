"""Overlays of broker processes on this machine: `mercast up`, `down`, `status` and `leave` start, supervise, show and
stop them. Of the broker packages it may import config and security.
"""
