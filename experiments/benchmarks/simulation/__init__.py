"""The speed of simulations, and the calibration of their costs."""
