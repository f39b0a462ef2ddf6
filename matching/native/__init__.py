"""The indexes that are implemented in C++, and their Python wrappers. The C++ sources are in `src`. Each module here
wraps a class of the compiled module `matching._native`. `matching.registry` loads it by name, if the module was
compiled; so this package exports no names. Of `matching` it may import expressions, languages and the interface of
every index.
"""
