"""Rayfold by the name of its command: `import rayfold` is `import renderer`, and so are the modules below them.

After `import rayfold.flames`, `rayfold` is the module `renderer` and `rayfold.flames` the module `renderer.flames`:
there is one of each class, and what was pickled by one name is read by the other.
"""

import sys

import renderer

TYPE_CHECKING = False  # as in renderer/__init__.py

if TYPE_CHECKING:
    __all__: list[str] = []
    __all__ += renderer.__all__
    from renderer import *  # noqa: F403
    from renderer import cdollar as cdollar
    from renderer import flames as flames
    from renderer import gpu as gpu
    from renderer import numerics as numerics

    __version__ = renderer.__version__
else:
    from importlib import import_module
    from importlib.machinery import ModuleSpec
    from importlib.util import find_spec

    class Alias:
        """Finds `rayfold.NAME`, and loads it by leaving the module `renderer.NAME` in its place."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.startswith("rayfold.") and (found := find_spec(f"renderer{name[7:]}")):
                return ModuleSpec(name, Alias, origin=found.origin)  # the __file__ of `python -m rayfold`
            return None

        @staticmethod
        def create_module(spec):
            return None

        @staticmethod
        def exec_module(module):
            sys.modules[module.__name__] = import_module(f"renderer{module.__name__[7:]}")

        @staticmethod
        def get_code(name):  # of `python -m rayfold`
            spec = find_spec(f"renderer{name[7:]}")
            return spec.loader.get_code(spec.name)

    sys.meta_path.insert(0, Alias)
    sys.modules["rayfold"] = renderer
