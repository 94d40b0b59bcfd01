"""Rayfold by the name of its command: `import rayfold` offers what `import renderer` does."""

from typing import TYPE_CHECKING

import renderer

if TYPE_CHECKING:
    __all__: list[str] = []
    __all__ += renderer.__all__
    from renderer import *  # noqa: F403
    from renderer import cdollar as cdollar
    from renderer import flames as flames
    from renderer import gpu as gpu
    from renderer import numerics as numerics
else:
    __dir__, __doc__, __getattr__ = renderer.__dir__, renderer.__doc__, renderer.__getattr__

__version__ = renderer.__version__
