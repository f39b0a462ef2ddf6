"""The matching indexes in Python, one module or package for each algorithm.

This package imports expressions, and the interface that every index has (`matching.matcher`).
"""
