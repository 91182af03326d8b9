"""Activations that exporters write out: PyTorch GELU as erf, TensorFlow and Hugging Face their tanh forms, JAX sigmoid as tanh.

Patterns multiply by numbers and add negative ones: forms make these of divisions and differences, and not the other way round.
"""

from __future__ import annotations

from xyntra_ep.fusion.egraph.rule import EXPORTED, Rule

RULES = [
    Rule(name="gelu.erf", pattern="x * (erf(sqrt(0.5) * x) + 1) * 0.5", replacement="gelu_erf(x)", tolerance=EXPORTED),
    Rule(
        name="gelu.tanh",
        pattern="x * (tanh((x + x**3 * 0.044715) * sqrt(2 / pi)) + 1) * 0.5",
        replacement="gelu_tanh(x)",
        tolerance=EXPORTED,
    ),
    Rule(name="silu.sigmoid", pattern="x * sigmoid(x)", replacement="silu(x)"),
    Rule(name="sigmoid.exp", pattern="1 / (1 + exp(-x))", replacement="sigmoid(x)", tolerance=EXPORTED),
    Rule(name="sigmoid.tanh", pattern="0.5 * (tanh(0.5 * x) + 1)", replacement="sigmoid(x)", tolerance=EXPORTED),
    Rule(name="tanh.sigmoid", pattern="2 * sigmoid(2 * x) + -1", replacement="tanh(x)", tolerance=EXPORTED),
]
