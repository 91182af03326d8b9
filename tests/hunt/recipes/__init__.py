"""What may stand around each operator: one row per operator that XyntraEP claims, named as in its registry, and rows named
"chain.*" for several nodes that only together ask something of fusion or of shape arithmetic.

A recipe says what an operator wants of its inputs and which attributes are worth drawing; sizes and dtypes come from the builder,
and whether ONNX Runtime takes the node from ONNX Runtime. Wrong things are drawn on purpose now and then (``Builder.contrary``).
"""

from tests.hunt.recipes._row import RECIPES, Recipe

__all__ = ["RECIPES", "Recipe"]
