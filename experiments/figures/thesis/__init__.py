"""The routing figures of the thesis, one module for each."""
