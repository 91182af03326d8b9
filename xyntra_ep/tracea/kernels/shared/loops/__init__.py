"""Evaluating an op's expressions inside a loop nest, for CPU and GPU alike."""
