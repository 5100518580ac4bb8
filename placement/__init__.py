"""Placement: tracks what a cloud has and who uses it."""
