"""The target `glsl`: fragment passes."""
