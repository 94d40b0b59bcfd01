"""Packages whose names are imported at their first use: `renderer.cdollar`, `renderer.flames`, `renderer.gpu`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

ATTRIBUTES = ("__all__", "__doc__", "__file__", "__name__", "__path__")  # of every package


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """The functions `__dir__` and `__getattr__` of a package; `homes` gives the module in it that has each name."""

    def directory() -> list[str]:
        return sorted([*homes, *ATTRIBUTES])

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return directory, attribute
