"""Results of tuning, kept on disk: which configuration of a variant was measured to be best for a shape.

`doctor/decision.py` prefers a stored result to a variant's own estimate. Sessions write none: kernels run with analytic defaults.
Read first: `store.py`.
"""
