"""Core IR: what is to be computed, as a program of a few general operations over strided operands.

`fusion` writes such programs, and all of `tracea` reads them. An operation says nothing about loops, threads or a machine.
Read first: `ops.py`, then `expr.py` (scalar expressions) and `dims.py` (symbolic sizes). `interpreter.py` defines the meaning, in
float64, and tests compare kernels with it.
"""
