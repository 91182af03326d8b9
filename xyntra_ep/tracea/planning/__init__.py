"""From a core-IR program to a plan: kernel calls in an order, memory for each value, and the bytes that native code executes.

Comes in: a program and the machine, from `interface/islands.py`. Goes out: a `PlannedProgram` (`plan.py`), and its manifest
(`manifest.py`, docs/plan-format.md). Sizes stay symbolic throughout.
Read first: `planner.py`, then `builder.py` and `buffers.py`.
"""
