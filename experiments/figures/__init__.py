"""The papers' figures on routing as experiments: one module for each, listed in `registry`."""
