"""Tuning: what a kernel may be made with (`space.py`), which of it to try next (`search.py`), and what trials have found, kept on
disk (`tuning_cache.py`). Nothing is measured here; `interface/tuning` does that. `doctor/decision.py` prefers what is kept to a
variant's own estimate.
"""
