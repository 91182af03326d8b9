"""What the `xyntra` command and the Python API answer: which node runs where and why, what the machine can do, what drifts.

Comes in: a model or a session, from `cli.py` or a user. Goes out: records that print as text or JSON. No session needs this
package. Read first: `explain.py`, `machine.py` (doctor) and `compare.py`; `fused/model.py` is `xyntra fuse`.
"""

from xyntra_ep.diagnostics.compare import compare
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.machine import doctor

__all__ = ["compare", "doctor", "explain"]
