"""Without PyTorch what imports it is not, and the tests say why they are skipped."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    collect_ignore = ["architectures.py", "compare.py"]
