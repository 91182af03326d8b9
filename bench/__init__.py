"""Measures models and operators against ONNX Runtime's CPU provider, and stores what it measured as JSON.

Comes in: models of `zoo` or of a user, and contenders (runtimes with options), from the `bench` command. Goes out: a file of
results (`results.py`, `schema`), from which `reports` makes tables. It imports XyntraEP only inside functions that need it.
Read first: README.md, then `plan.py`, `measure.py` and `interleaving.py`.
"""
