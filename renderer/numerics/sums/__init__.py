"""Sums of huge arrays: fast, reproducible and exact."""
