"""The text forms of expressions and publications: SQL, PADRES and JSON.

This package imports `matching.expressions`.
"""
