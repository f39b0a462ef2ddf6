"""Boolean expressions over attributes: values, predicates, evaluation, normal forms, intersection, printing.

This package imports nothing else of matching but its errors.
"""
