"""The routing figures of the thesis, one module for each with its `FIGURE`. `experiments.figures.registry` loads them
by name, so this package exports no names. It may import what figures may import.
"""
