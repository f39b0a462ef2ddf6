"""The indexes whose implementation is C++, and their Python side. The C++ sources are in `src`.

Each module here wraps a class of the compiled module `matching._native`.
"""
