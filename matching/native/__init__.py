"""The indexes that are implemented in C++, and their Python wrappers. The C++ sources are in `src`.

Each module here wraps a class of the compiled module `matching._native`.
"""
