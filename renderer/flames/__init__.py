"""Fractal flames without pictures: genome, .flame files, variations, palettes, kernels of the chaos game,
development.
"""
