"""A file for each kind of core-IR op: its Triton kernel."""
