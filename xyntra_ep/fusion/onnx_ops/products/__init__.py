"""Operators with a matrix product or a convolution in them."""
