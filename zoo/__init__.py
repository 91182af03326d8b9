"""Models to measure and to test with, built on demand with seeded weights or filled from real checkpoints.

Comes in: a name, from `bench`, tests or `python -m xyntra_zoo`. Goes out: the path of an ONNX file in the zoo's cache, and inputs
for it. A model is a row of `MODELS` in a file for each family. Read first: README.md, then `model.py` and `resnet50.py`.
"""

from xyntra_zoo.cache import model_path
from xyntra_zoo.model import Family, ZooModel
from xyntra_zoo.registry import Registry, zoo

__all__ = ["Family", "Registry", "ZooModel", "model_path", "zoo"]
