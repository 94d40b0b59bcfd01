"""Preparation of systems for band LU: transposition, reordering, equilibration, least squares."""
