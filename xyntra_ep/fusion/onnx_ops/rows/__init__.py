"""Operators that reduce along axes, and those that go along one in order."""
