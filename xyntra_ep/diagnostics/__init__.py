"""Asking: which node runs where and why, what this machine can do, where outputs drift."""

from xyntra_ep.diagnostics.compare import compare
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.machine import doctor

__all__ = ["compare", "doctor", "explain"]
