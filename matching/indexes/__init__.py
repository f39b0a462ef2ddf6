"""The matching indexes in Python, one module or package for each algorithm.

This package imports `matching.expressions` and the interface of every index, `matching.matcher`.
"""
