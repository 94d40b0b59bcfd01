"""Variations of flames: their catalog, user-defined ones, and the tables that figures and formulas read."""
