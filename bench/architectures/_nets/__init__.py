"""Nets that no library in use here has. They import PyTorch."""
