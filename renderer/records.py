"""`dataclass` as the standard library has it, but nothing is compiled before a class is first used.

dataclasses.dataclass() compiles a text for each of six methods: 0.4 ms a class, 2.8 ms for one of 60 fields. A first
picture defines 70 classes and makes objects of a third of them. Here a definition takes 25 us.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = [
    "MISSING", "Field", "asdict", "astuple", "dataclass", "extended", "field", "fields", "is_dataclass", "replace",
]  # fmt: skip
T = TypeVar("T")
# The default of a parameter whose default is made by a function; help() shows it as the standard library does.
FACTORY = type("Factory", (), {"__repr__": lambda _: "<factory>"})()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, kw_only=False):
        """Adds the methods of a dataclass, see dataclasses.dataclass(); keeps methods that the class defines itself.

        `__dataclass_params__.frozen` is False, so a frozen class by dataclasses.dataclass() cannot inherit from `cls`.
        """
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        methods = {"__init__": _Init(cls, frozen)}
        methods |= {"__repr__": _repr} if repr else {}
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse} if frozen else {}
        if eq:
            names = [each.name for each in fields(cls) if each.compare]
            values = attrgetter(*names) if names else lambda _: ()

            def __eq__(self, other):
                return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

            methods |= {"__eq__": __eq__, "__hash__": (lambda self: hash(values(self))) if frozen else None}
        for name, method in methods.items():
            if vars(cls).get(name) is None:  # __hash__ of a class with an __eq__ is None
                setattr(cls, name, method)
        return cls


def extended(name: str, base: type[T], new_fields: Sequence[tuple[str, object, object]]) -> type[T]:
    """Returns a frozen subclass of a dataclass with `new_fields`: name, type, and default or field() of each."""
    body: dict[str, Any] = {each: default for each, _, default in new_fields}
    body |= {"__annotations__": {each: kind for each, kind, _ in new_fields}, "__doc__": base.__doc__}
    record: type[T] = dataclass(frozen=True)(type(name, (base,), body))
    return record


class _Init:
    """`__init__` of the class `cls`, until the first use replaces it with a compiled function."""

    def __init__(self, cls: Any, frozen: bool) -> None:
        self._cls, self._frozen = cls, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Compiles the function; returns it, bound to an instance if there is one."""
        made = self._cls.__init__ = _compile_init(self._cls, self._frozen)
        return made.__get__(instance, owner)


def _compile_init(cls: Any, frozen: bool) -> Any:
    """Compiles `__init__(self, FIELD=DEFAULT, ..., *, KEYWORD=DEFAULT, ...)`."""
    scope: dict[str, Any] = {"__assign": object.__setattr__, "__factory": FACTORY, "__name__": cls.__module__}
    parameters, body = ["self"], ["    pass"]
    for each in sorted(fields(cls), key=lambda each: bool(each.kw_only)):
        name = value = each.name
        if each.kw_only and "*" not in parameters:
            parameters.append("*")
        default = ""
        if each.default_factory is not MISSING:
            scope[f"__make_{name}"], default = each.default_factory, " = __factory"
            value = f"{name} if {name} is not __factory else __make_{name}()" if each.init else f"__make_{name}()"
        elif each.default is not MISSING:
            scope[f"__default_{name}"], default = each.default, f" = __default_{name}"
        parameters += [name + default] if each.init else []
        if each.init or each.default_factory is not MISSING:
            body.append(f"    __assign(self, {name!r}, {value})" if frozen else f"    self.{name} = {value}")
    body += ["    self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *body]), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in fields(cls) if each.init} | {"return": None}
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    texts = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(texts)})"


def _refuse(self: object, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")
