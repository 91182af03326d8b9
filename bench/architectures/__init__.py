"""Architectures as people export them from PyTorch: is any of them slower? `bench architectures` measures all.

A row is a model with random weights in a file of its family; `_export.py` writes it as ONNX with one of PyTorch's exporters.
"""

from xyntra_bench.architectures._architecture import Architecture, architectures

__all__ = ["Architecture", "architectures"]
