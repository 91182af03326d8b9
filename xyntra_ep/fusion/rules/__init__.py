"""Rules of algebra: rows of `RULES`, in a file for each family. `egraph/rule.py` says what a rule is.

    RULES = [Rule(name="silu.sigmoid", pattern="x * sigmoid(x)", replacement="silu(x)")]

Each is tested by itself, with random numbers and with those that it claims to keep (tests/fusion/test_rules.py).
"""

from xyntra_ep.fusion.egraph import Rule
from xyntra_ep.fusion.rules._built_in import RULES, built_in
from xyntra_ep.fusion.rules._user import algebra

__all__ = ["RULES", "Rule", "algebra", "built_in"]
