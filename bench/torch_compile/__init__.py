"""Modules of PyTorch, eager and compiled by torch.compile: `bench run torch`.

Comes in: rows of `architectures` and names of backends. Goes out: cases and sessions, which are measured as all others are. Read
first: `cases.py`, then `backends.py`.
"""
