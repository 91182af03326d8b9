"""The provider as ONNX Runtime meets it: registration, and the call in which native code asks for a plan.

Comes in: a graph as a flat buffer, from `native/planner_link.cc` while a session is created. Goes out: the bytes of a plan.
Read first: `callback.py`, which receives the call, then `planner.py`, which runs all steps of planning.
"""
