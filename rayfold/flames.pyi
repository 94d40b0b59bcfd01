from renderer.flames import *  # noqa: F403
