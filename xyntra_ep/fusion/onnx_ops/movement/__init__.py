"""Operators that put elements elsewhere, and those that compute shapes."""
