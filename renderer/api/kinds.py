"""The settings of the kinds of pictures that scripts use most, so that a type checker knows the names of settings.

scene = renderer.load("cornell")
assert isinstance(scene.settings, renderer.RaytraceSettings)  # from here on a misspelled setting is a type error
"""

from renderer.flames.settings import Settings as FlameSettings
from renderer.fractals.settings import Settings as FractalSettings
from renderer.raytracing.settings import Settings as RaytraceSettings

__all__ = ["FlameSettings", "FractalSettings", "RaytraceSettings"]
