"""Operators of quantised models: scales, zero points, products of integers."""
