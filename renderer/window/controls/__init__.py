"""Controls made from a scene's settings, and the theme."""
