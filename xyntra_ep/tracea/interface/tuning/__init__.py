"""Tuning: one op by itself (`problem.py`), what it may be computed by and what that takes (`trial.py`), the search (`tuner.py`),
and a model's ops in their order (`model.py`). What to try next, and what was found, is in `tracea/optimizer`.
"""
