"""Boolean expressions over attributes: values, predicates, evaluation, normal forms, intersection, printing.

Of matching, this package imports only `matching.errors`.
"""
