"""Triton: islands as Triton kernels, and Triton kernels on the processor.

    xyntra fuse model.onnx --emit triton

Read first: docs/triton.md, then `module.py`.
"""
