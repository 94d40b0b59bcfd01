"""The public API: `import renderer` offers the names of these modules; `assets/guides/api.md` shows them.

scenes.py makes scenes of Python values, drawing.py draws them, image.py is what it returns, files.py writes films and
verifies pictures, numbers.py adds arrays and solves systems.
"""

from renderer.system.process import limit_blas_spin

limit_blas_spin()
