from renderer.cdollar import *  # noqa: F403
