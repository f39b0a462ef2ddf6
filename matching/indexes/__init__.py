"""The matching indexes in Python, one module or package for each algorithm. `matching.registry` creates them by name.
Of `matching` it may import expressions, languages, native, the registry and the interface of every index,
`matching.matcher`.
"""

from matching.indexes.with_fallback import for_any_expression

__all__ = ["for_any_expression"]
