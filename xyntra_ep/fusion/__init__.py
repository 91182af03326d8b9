"""The graph side: which nodes XyntraEP claims, and which operations they are fused into.

Comes in: the ONNX graph (`graph.py`), from `provider/planner.py`. Goes out: islands of nodes (`partition.py`), each as a program
of a few core-IR operations (`schedule.py`), and what it should gain over ONNX Runtime (`estimates/cost.py`). Operators are rows
in `onnx_ops`. Read first: `graph.py`, `tensor.py`, `trace.py`.
"""
