"""Fractal flames, below pictures: genome, .flame files, variations, palettes, kernels of the chaos game, exposure."""
