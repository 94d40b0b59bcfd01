"""Escape-time fractals: settings, reference orbits and the kernels that draw at any depth."""
