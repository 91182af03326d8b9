"""What the machine can do, and which kernel variant it should use.

Comes in: the processor (`profile.py`) or GPU, measured ceilings (`ceilings.py`), a core-IR operation. Goes out: a decision, with
the reason why each other variant was rejected. `planning` asks for decisions; `xyntra doctor` shows what was found. Read first:
`decision.py`, a pure function, and `variants.py`.
"""
