"""Accuracy of solutions of band systems: residuals in twice the precision, refinement, error bounds, enclosures."""
