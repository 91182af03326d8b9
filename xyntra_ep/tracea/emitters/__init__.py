"""Emitters print semantic IR as text for a compiler: C for CPUs, and the C-like languages of GPUs.

Comes in: a checked kernel, from `planning/builder.py`. Goes out: its source text, for `runtime`. A target declares what differs
from plain C; `c_family.py` walks the kernel. Read first: `c_family.py`, then `cpu.py`.
"""
