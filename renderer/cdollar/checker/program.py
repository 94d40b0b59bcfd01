"""The state of one compilation that all parts of the checker share: scopes, types, functions, host numbers, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from renderer.cdollar.checker.arrays import open_array
from renderer.cdollar.checker.domain_inference import InferenceStack
from renderer.cdollar.checker.node_builder import NodeBuilder
from renderer.cdollar.checker.scopes import Scope
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.frontend.hints import WORDS, did_you_mean
from renderer.cdollar.ir.dag import (
    UNKNOWN,
    ArraySource,
    Dag,
    Node,
    Range,
    RuntimeScalar,
    topological_order,
)
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.operations import evaluate_numbers
from renderer.cdollar.ir.types import Data, DomainType, FunctionType, Record, Scalar, Type, Vector, component_types
from renderer.plain import printable

MAX_RECORD_COMPONENTS = 64


class NotDeviceCode(Exception):
    """A body that was tried as a device function builds functions."""


@dataclass(eq=False)
class UserFunction:
    """A function of the program. `device_function` is set once it is lowered; `is_host_only` if it cannot be."""

    declaration: ast.FunctionDeclaration
    name: str
    parameter_types: tuple[Type, ...]
    result_type: Type
    parameter_names: tuple[str, ...]
    device_function: DeviceFunction | None = None
    is_host_only: bool = False

    @property
    def signature(self) -> str:
        """`name(type, type)`, for messages."""
        return f"{self.name}({', '.join(map(str, self.parameter_types))})"

    @property
    def takes_data(self) -> bool:
        """Whether no parameter is a function."""
        return all(isinstance(type_, Data) for type_ in self.parameter_types)

    @property
    def is_reduction_operator(self) -> bool:
        """Whether the function is T(T, T), which combines two elements."""
        return self.parameter_types == (self.result_type,) * 2 and isinstance(self.result_type, Data)

    @property
    def is_expression(self) -> bool:
        """Whether the body is one `return`: calls are then inlined."""
        body = self.declaration.body
        return len(body) == 1 and isinstance(body[0], ast.Return)


@dataclass
class Body:
    """Where the lowering of a function's body is: the current scope, and how many conditions enclose it."""

    scope: Scope = field(default_factory=Scope)
    in_device_code: bool = False
    guard_depth: int = 0
    defining: str = ""  # the function whose parameters and body are being lowered

    @contextmanager
    def block(self, scope: Scope | None = None) -> Iterator[Scope]:
        """Lowers in an inner scope (or the given one), then returns to the current one."""
        outer, self.scope = self.scope, scope or Scope(self.scope)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def guarded(self, is_guarded: bool = True) -> Iterator[None]:
        """Lowers what is evaluated only under a condition."""
        self.guard_depth += is_guarded
        try:
            yield
        finally:
            self.guard_depth -= is_guarded

    def require_host(self) -> None:
        """Raises NotDeviceCode where functions cannot be built."""
        if self.in_device_code:
            raise NotDeviceCode


class TypeTable:
    """The built-in types, classes and type aliases by name."""

    def __init__(self) -> None:
        self.types: dict[str, Type] = {name: Scalar(name) for name in ast.PRIMITIVES}
        self.types["domain"] = DomainType(1)
        self.types |= {name: Vector(name[:-1], int(name[-1])) for name in ast.VECTORS}
        self.function_classes: dict[str, ast.ClassDeclaration] = {}  # those derived from functional types
        self.declared_later: set[str] = set()  # classes and aliases of the program that is being loaded

    def resolve(self, tree: ast.AstNode) -> Type:
        """The type that is written."""
        if isinstance(tree, ast.NamedType):
            if tree.name in self.types:
                return self.types[tree.name]
            later = "it is declared further down, or contains itself" if tree.name in self.declared_later else ""
            hint = later or WORDS.get(tree.name) or did_you_mean(tree.name, self.types)
            hint = hint or "types: " + ", ".join(sorted(self.types))
            raise ProgramError("CS0201", tree.span, f"unknown type `{tree.span.excerpt}`", hint)
        if isinstance(tree, ast.KnownType):
            return tree.type
        assert isinstance(tree, ast.FunctionalType)
        if tree.is_array and self.resolve(tree.result) == DomainType(1):
            return DomainType(len(tree.parameters))
        result, parameters = self.resolve(tree.result), tuple(self.resolve(p) for p in tree.parameters)
        if isinstance(result, FunctionType) and result.is_array and tree.is_array:  # float[][] is float[,]
            return FunctionType(
                result.result, (*result.parameters, *(p for p in parameters if isinstance(p, Data))), True
            )
        if isinstance(result, FunctionType):
            written = ", ".join(map(str, parameters + result.parameters))
            message = "a function that yields a function is written with all its parameters"
            raise ProgramError("CS0212", tree.span, message, f"`{result.result}({written})`")
        if not isinstance(result, Data):
            raise ProgramError("CS0212", tree.span, f"a function in a variable yields data, not a {result}")
        data = []
        for part, parameter in zip(tree.parameters, parameters, strict=True):
            if not isinstance(parameter, Data):
                raise ProgramError("CS0212", part.span, f"a parameter of a functional type is data, not {parameter}")
            data.append(parameter)
        if not data:
            raise ProgramError("CS0212", tree.span, "a functional type needs a parameter")
        return FunctionType(result, tuple(data), tree.is_array)

    def declare(self, item: ast.ClassDeclaration | ast.TypeAlias) -> None:
        """A record type, or `type name = type;`. Built-in vectors may be declared again with the same fields."""
        if isinstance(item, ast.TypeAlias):
            self.types[item.name] = self.resolve(item.type)
            return
        if item.base is not None:
            self._declare_function_class(item, item.base)
            return
        fields = []
        for name, written, span in item.fields:
            type_ = self.resolve(written)
            if not isinstance(type_, Data):
                message = f"the field `{name}` is {type_}: fields are numbers, vectors or classes of them"
                raise ProgramError("CS0210", span, message)
            fields.append((name, type_))
        if not fields:
            raise ProgramError("CS0210", item.name_span, f"the class {item.name} has no fields")
        record = Record(item.name, tuple(fields))
        count = len(component_types(record))
        if count > MAX_RECORD_COMPONENTS:
            message = f"{item.name} has {count} components, more than {MAX_RECORD_COMPONENTS}"
            raise ProgramError("CS0210", item.name_span, message)
        built_in = self.types.get(item.name)
        if isinstance(built_in, Vector):
            if fields != [("xyzw"[k], Scalar(built_in.scalar_type)) for k in range(built_in.size)]:
                message = f"{item.name} is built in, with other fields"
                raise ProgramError("CS0211", item.name_span, message, "use another name")
            return
        if item.name in self.types:
            raise ProgramError("CS0109", item.name_span, f"the type {item.name} is declared twice")
        self.types[item.name] = record

    def _declare_function_class(self, item: ast.ClassDeclaration, base: ast.AstNode) -> None:
        """A class whose values are functions: its name is another one of the functional type."""
        type_ = self.resolve(base)
        if not isinstance(type_, FunctionType) or type_.is_array:
            message = f"{item.name} is derived from {type_}: only functional types can be derived from"
            raise ProgramError("CS0115", base.span, message, "`final class Ramp : float(int) { ... }`")
        if item.name in self.types:
            raise ProgramError("CS0109", item.name_span, f"the type {item.name} is declared twice")
        for _, written, _ in item.fields:
            self.resolve(written)
        self.types[item.name], self.function_classes[item.name] = type_, item


class FunctionTable:
    """The functions of the program and of the prelude by name: sets of overloads."""

    def __init__(self, types: TypeTable):
        self.types = types
        self.overloads: dict[str, list[UserFunction]] = {}
        self.prelude_functions: set[UserFunction] = set()  # a program may declare these anew
        self.derived: dict[str, list[UserFunction]] = {}  # made of others: "grad(f)"
        self.generics: dict[str, list[ast.FunctionDeclaration]] = {}
        self.method_names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.overloads or name in self.derived or name in self.generics

    def get(self, name: str) -> list[UserFunction]:
        """The overloads of a name, [] if there are none."""
        return self.overloads.get(name) or self.derived.get(name, [])

    def all(self) -> list[UserFunction]:
        """Every function."""
        return [function for overloads in self.overloads.values() for function in overloads]

    def declare(self, item: ast.FunctionDeclaration) -> UserFunction:
        """Adds a function; one of the prelude with the same parameters is replaced."""
        function = self.function_of(item)
        types = function.parameter_types
        overloads = self.overloads.setdefault(item.name, [])
        overloads[:] = [f for f in overloads if f not in self.prelude_functions or f.parameter_types != types]
        if any(other.parameter_types == types for other in overloads):
            raise ProgramError("CS0109", item.name_span, f"{function.signature} is declared twice")
        if item.name.startswith("operator"):
            check_operator(function)
        overloads.append(function)
        return function

    def declare_all(self, items: list[ast.FunctionDeclaration]) -> None:
        """Adds functions, generic ones and methods."""
        for item in items:
            if "." in item.name:
                self.method_names.add(item.name.split(".")[1])
            if item.type_parameters:
                self.declare_generic(item)
            else:
                self.declare(item)

    def declare_generic(self, item: ast.FunctionDeclaration) -> None:
        """Adds a generic function; raises CS0217 if its type parameters cannot be inferred."""
        check_generic(item)
        self.generics.setdefault(item.name, []).append(item)

    def function_of(self, item: ast.FunctionDeclaration) -> UserFunction:
        """The function that is declared, not yet added; raises CS0213 for attributes that do not fit."""
        types = tuple(self.types.resolve(p.type) for p in item.parameters)
        assert item.result is not None
        names = tuple(p.name for p in item.parameters)
        function = UserFunction(item, item.name, types, self.types.resolve(item.result), names)
        if item.attributes and not (len(types) == 2 and types[0] == types[1] == function.result_type):
            name, span = next(iter(item.attributes.items()))
            actual = f"{function.result_type}({', '.join(map(str, types))})"
            raise ProgramError("CS0213", span, f"[{name}] needs a function T(T, T), but this is {actual}")
        return function

    def remove(self, function: UserFunction) -> None:
        """Takes a function back."""
        self.overloads[function.name].remove(function)
        if not self.overloads[function.name]:
            del self.overloads[function.name]


def check_generic(item: ast.FunctionDeclaration) -> None:
    """Raises CS0217 unless the type parameters of a generic function can be inferred from its parameters."""
    named = {t.name for p in item.parameters for t in ast.walk(p.type) if isinstance(t, ast.NamedType)}
    for name in item.type_parameters:
        if name not in named:
            message = f"the type `{name}` cannot be inferred from the parameters of {item.name}"
            raise ProgramError("CS0217", item.name_span, message, f"use it in a parameter: `{name} x`, `{name}[] a`")
    if item.name == "main" or item.name.startswith("operator"):
        raise ProgramError("CS0217", item.name_span, f"`{item.name.removeprefix('operator')}` cannot be generic")


def check_operator(function: UserFunction) -> None:
    """Raises CS0214 unless the operator has its number of operands, one of them of a class."""
    name, span = function.name.removeprefix("operator"), function.declaration.name_span
    allowed = (1,) if name in "!~" else (1, 2) if name in "+-" else (2,)
    types = function.parameter_types
    if len(types) not in allowed:
        raise ProgramError("CS0214", span, f"the operator `{name}` takes {' or '.join(map(str, allowed))} operands")
    if not any(isinstance(t, Record) for t in types):
        message = f"an operator is defined for a class of the program, not {', '.join(map(str, types))}"
        raise ProgramError("CS0214", span, message)


class HostEvaluator:
    """Numbers that must be known while the program is built: ends of ranges, conditions of host statements.

    While `abstract_depth` is positive, a function is checked with abstract arguments, whose numbers are unknown (None).
    """

    def __init__(self, target: Target):
        self.target = target
        self.abstract_depth = 0
        self.keeps_expressions = False  # while a function is differentiated: an array would hide what it depends on
        self.statement_count = 0  # statements that ran on the host
        self.scalars_read: set[RuntimeScalar] = set()  # numbers of parameters on which the program's shape depends
        self.known: WeakKeyDictionary[Node, Any] = WeakKeyDictionary()

    def node_number(self, node: Node) -> Any:
        """The number of a node without bound variables; None if it is unknown."""
        if not self.abstract_depth:
            self.note_scalars(node)
        if node.op == "scalar":
            return node.attribute.number
        if node.op == "apply" and isinstance(node.attribute, str) and all(n.op == "scalar" for n in node.inputs):
            numbers = [child.attribute.number for child in node.inputs]
            types = [child.type for child in node.inputs]
            return None if None in numbers else evaluate_numbers(node.attribute, node.type, numbers, types)
        if self.abstract_depth and has_unknown(node):
            return None
        if node not in self.known:
            self.known[node] = self.target.evaluate_scalars([node])[0]
        return self.known[node]

    def note_scalars(self, node: Node) -> None:
        """Remember the runtime scalars that a node which the host evaluates depends on."""
        for part in topological_order([node]):
            if part.op == "scalar" and isinstance(part.attribute, RuntimeScalar):
                self.scalars_read.add(part.attribute)

    def cheap_numbers(self, value: DataValue) -> list | None:
        """The numbers of a closed value that needs no reduction, None for others and for unknown ones."""
        is_known = all(node.op == "scalar" and node.attribute.number is not None for node in value.nodes)
        is_cheap = value.is_closed and not any(node.needs_evaluation for node in value.nodes)
        if is_known or is_cheap and not self.abstract_depth:
            return [self.node_number(node) for node in value.nodes]
        return None

    def materialize_variables(self, scope: Scope) -> None:
        """Evaluates the functions that variables hold, so that the DAG of a long loop stays small."""
        if self.abstract_depth or self.keeps_expressions:
            return
        for _, variable in scope.variables():
            value = variable.value
            if not isinstance(value, FunctionValue):
                continue
            is_finite = all(isinstance(r, Range) for r in value.domain) and not value.borders
            if value.node.op != "function" or isinstance(value.node.attribute, tuple) and is_finite:
                variable.value = self.target.materialize(value)


def has_unknown(node: Node) -> bool:
    """Whether a node depends on an abstract argument or on a bound variable."""
    for part in topological_order([node]):
        if part.op == "scalar" and part.attribute.number is None or part.op == "variable":
            return True
        if part.op == "function" and isinstance(part.attribute, ArraySource) and part.attribute.data is None:
            return True
        if part.op == "reduce" and not all(isinstance(v.range, Range) for v in part.attribute[1]):
            return True
    return False


class Program:
    """All tables of one compilation, its DAG and its inference contexts."""

    def __init__(self, make_target: Callable[[Dag], Target], folder: Path | None = None):
        self.dag = Dag()
        self.builder = NodeBuilder(self.dag)
        self.types = TypeTable()
        self.functions = FunctionTable(self.types)
        self.globals = Scope()
        self.inference = InferenceStack()
        self.host = HostEvaluator(make_target(self.dag))
        self.folder = folder or Path()
        self.opened_files: dict[str, FunctionValue] = {}
        self.declared: dict[Span, Value] | None = None  # what variables are, where their names stand: for editors

    def open_file(self, name: str, span: Span) -> FunctionValue:
        """`file("big.npy")`: a function of its indices; nothing is read yet.

        Paths are relative to the program's folder, then to the current one.
        """
        if name not in self.opened_files:
            paths = [Path(name)] if Path(name).is_absolute() else [self.folder / name, Path(name)]
            path = next((p for p in paths if os.path.isfile(p)), None)
            if path is None:
                searched = printable(", ".join(dict.fromkeys(map(str, paths))))
                raise ProgramError(
                    "CS0502", span, f"the file {printable(name)} does not exist", f"looked at {searched}"
                )
            self.opened_files[name] = open_array(self.dag, path, None, name, span)
        return self.opened_files[name]

    def abstract_value(self, name: str, type_: Type) -> Value:
        """A value of the type of which nothing else is known (JAX's abstract value)."""
        if isinstance(type_, FunctionType):
            ranges = (UNKNOWN,) * sum(len(component_types(p)) for p in type_.parameters)
            return FunctionValue(type_, self.dag.array(type_, name, None, ranges), ranges)
        if isinstance(type_, DomainType):
            return DomainValue((UNKNOWN,) * type_.rank)
        assert isinstance(type_, Data)
        return DataValue(type_, tuple(self.dag.runtime_scalar(None, t, name) for t in component_types(type_)))


class UserCalls(Protocol):
    """Calls of the program's functions; the compilation makes them, as they lower whole bodies."""

    generics: Any  # the instances of generic functions

    def call(self, function: UserFunction, values: list, span: Span, body: Body) -> Value:
        """The value of a function for converted arguments, called from `body`."""

    def require_device_function(self, function: UserFunction, span: Span) -> DeviceFunction:
        """The function lowered for the device; raises CS0605 if it builds functions."""
