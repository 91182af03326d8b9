"""Without Triton and PyTorch what imports them is not, and the tests say why they are skipped."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("triton") is None:
    collect_ignore = ["child.py", "kernels.py", "launches.py", "modules.py"]
