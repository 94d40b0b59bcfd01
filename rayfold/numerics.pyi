from renderer.numerics import *  # noqa: F403
