"""Linear operations by what is known of their matrices: `kinds.py`, and how each is carried out: `plan.py`."""
