from renderer.gpu import *  # noqa: F403
