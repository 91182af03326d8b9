"""Benchmark and test models, built on demand with seeded weights or filled from real checkpoints."""

from zoo.cache import model_path
from zoo.model import Family, ZooModel
from zoo.registry import Registry, zoo

__all__ = ["Family", "Registry", "ZooModel", "model_path", "zoo"]
