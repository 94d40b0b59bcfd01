"""Names of a package that are imported when they are first asked for, so that importing the package takes no time."""

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # collections.abc would be half of `import renderer`
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: "Mapping[str, str]") -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Returns `__getattr__` and `__dir__` of a package whose names are defined in the modules `homes` below it.

    A name with the home "" is a package below this one.
    """

    def get(name: str) -> object:
        # help() (pydoc) gets no __all__: with one it prints every class, thousands of lines.
        if name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":
            return [known for known in homes if homes[known]]
        if name not in homes:
            from renderer.plain import suggestion

            raise AttributeError(f"module {package!r} has no attribute {name!r}{suggestion(name, homes)}")
        module = import_module(f"{package}.{homes[name] or name}")
        return getattr(module, name) if homes[name] else module

    return get, lambda: sorted([*homes, "__doc__", "__file__", "__name__", "__path__"])
