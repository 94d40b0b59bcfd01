"""A whole C$ program: its types, functions and constants; calls; main filled by name; what main yields."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import open_array
from renderer.cdollar.checker.checker import Checker
from renderer.cdollar.checker.device_function_lowering import DeviceFunction, DeviceFunctionLowering
from renderer.cdollar.checker.host_executor import HostExecutor, Returned, always_returns, missing_return
from renderer.cdollar.checker.values import (
    DataValue,
    FunctionValue,
    NodeBuilder,
    NotDeviceCode,
    Scope,
    UserFunction,
    Value,
    Variable,
    wrapped,
    zero_of,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.ast import PRIMITIVES, VECTORS
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import (
    UNKNOWN,
    ArraySource,
    Dag,
    Node,
    TooLarge,
    UserCall,
    topological_order,
    tuple_type,
)
from renderer.cdollar.ir.operations import evaluate
from renderer.cdollar.ir.types import DTYPES, FunctionType, Record, Scalar, Type, Vector, component_types, is_data

MAX_CALL_DEPTH = 64
MAX_RECORD_COMPONENTS = 64


class Target(Protocol):
    """What the host statements of a program ask of the target that evaluates it."""

    def evaluate_scalars(self, nodes: list[Node]) -> list: ...

    def materialize(self, function: FunctionValue) -> FunctionValue: ...


class Compilation:
    """The checked program: families of overloads by name, and the state of building its DAG."""

    def __init__(self, source, target: Target, folder: Path | None = None):
        self.source, self.target, self.folder = source, target, folder
        self.dag, self.inference_stack, self.inference_log = Dag(), [], []
        self.overloads: dict[str, list[UserFunction]] = {}
        self.types: dict[str, Type] = {name: Scalar(name) for name in PRIMITIVES}
        self.types |= {name: Vector(name[:-1], int(name[-1])) for name in VECTORS}
        self.globals = Scope()
        self.prelude_functions: set[UserFunction] = set()  # functions of the prelude
        self.declared: set[str] = set()  # names of the program's classes and aliases
        self.calls: list[UserFunction] = []
        self.statement_count, self.abstract = 0, 0
        self.known: WeakKeyDictionary = WeakKeyDictionary()
        self.needs_evaluation_cache: WeakKeyDictionary = WeakKeyDictionary()
        self.files: dict[str, FunctionValue] = {}

    # Declarations

    def load(self, program: ast.Program, checked: bool = True) -> None:
        """Declares everything, then checks every function apart from its callers; what came before may be replaced."""
        self.prelude_functions = {f for family in self.overloads.values() for f in family}
        self.declared = {i.name for i in program.items if isinstance(i, (ast.ClassDeclaration, ast.TypeAlias))}
        try:
            for item in program.items:
                if isinstance(item, ast.ClassDeclaration):
                    self.add_class(item)
                elif isinstance(item, ast.TypeAlias):
                    self.types[item.name] = self.type_of(item.type)
            for item in program.items:
                if isinstance(item, ast.FunctionDeclaration):
                    self.add_function(item)
            for item in program.items:
                if isinstance(item, ast.GlobalDeclaration):
                    HostExecutor(self, None, self.globals).run([item.declaration])
            for function in [f for family in self.overloads.values() for f in family]:
                if checked and function not in self.prelude_functions:
                    self.check(function)
        except TooLarge:
            self.too_large(Span(self.source, 0, 1))

    def too_large(self, span: Span):
        raise ProgramError(
            "CS0603",
            span,
            "the program builds more nodes than the compiler takes",
            "evaluate parts of it: `let`, or a cast to an array type",
        )

    def add_class(self, item: ast.ClassDeclaration) -> None:
        found = []
        for name, written, span in item.fields:
            type_ = self.type_of(written)
            if not is_data(type_):
                raise ProgramError(
                    "CS0210", span, f"the field `{name}` is {type_}: fields are numbers, vectors or classes of them"
                )
            found.append((name, type_))
        if not found:
            raise ProgramError("CS0210", item.name_span, f"the class {item.name} has no fields")
        record = Record(item.name, tuple(found))
        if len(component_types(record)) > MAX_RECORD_COMPONENTS:
            raise ProgramError(
                "CS0210",
                item.name_span,
                f"{item.name} has {len(component_types(record))} components, more than {MAX_RECORD_COMPONENTS}",
            )
        built_in = self.types.get(item.name)
        if isinstance(built_in, Vector):
            names = tuple((n, t) for n, t in found)
            if names != tuple(("xyzw"[k], Scalar(built_in.scalar_type)) for k in range(built_in.size)):
                raise ProgramError(
                    "CS0211", item.name_span, f"{item.name} is built in, with other fields", "use another name"
                )
            return
        if item.name in self.types:
            raise ProgramError("CS0109", item.name_span, f"the type {item.name} is declared twice")
        self.types[item.name] = record

    def type_of(self, tree: ast.AstNode) -> Type:
        if isinstance(tree, ast.NamedType):
            found = self.types.get(tree.name)
            if found is None:
                later = "it is declared further down, or contains itself" if tree.name in self.declared else ""
                raise ProgramError(
                    "CS0201", tree.span, f"`{tree.name}` is no type", later or "types: " + ", ".join(sorted(self.types))
                )
            return found
        result = self.type_of(tree.result)
        parameters = tuple(self.type_of(p) for p in tree.parameters)
        if isinstance(result, FunctionType):
            raise ProgramError(
                "CS0212",
                tree.span,
                "a function that yields a function is written with all its parameters",
                f"`{result.result}({', '.join(map(str, parameters + result.parameters))})`",
            )
        for part, parameter in zip(tree.parameters, parameters, strict=True):
            if not is_data(parameter):
                raise ProgramError("CS0212", part.span, f"a parameter of a functional type is data, not {parameter}")
        if not parameters:
            raise ProgramError("CS0212", tree.span, "a functional type needs a parameter")
        return FunctionType(result, parameters, tree.is_array)

    def add_function(self, item: ast.FunctionDeclaration) -> None:
        types = tuple(self.type_of(p.type) for p in item.parameters)
        result = self.type_of(item.result)
        function = UserFunction(item, item.name, types, result, tuple(p.name for p in item.parameters))
        family = self.overloads.setdefault(item.name, [])
        family[:] = [f for f in family if f not in self.prelude_functions or f.parameter_types != types]
        if any(other.parameter_types == types for other in family):
            raise ProgramError("CS0109", item.name_span, f"{function.signature} is declared twice")
        if item.name.startswith("operator"):
            self.check_operator(function)
        if item.attributes and not (len(types) == 2 and types[0] == types[1] == result):
            name, span = next(iter(item.attributes.items()))
            raise ProgramError(
                "CS0213", span, f"[{name}] needs a function T(T, T), but this is {result}({', '.join(map(str, types))})"
            )
        family.append(function)

    def check_operator(self, function: UserFunction) -> None:
        name = function.name.removeprefix("operator")
        allowed = (1,) if name in "!~" else (1, 2) if name in "+-" else (2,)
        if len(function.parameter_types) not in allowed:
            raise ProgramError(
                "CS0214",
                function.declaration.name_span,
                f"the operator `{name}` takes {' or '.join(map(str, allowed))} operands",
            )
        if not any(isinstance(t, Record) for t in function.parameter_types):
            raise ProgramError(
                "CS0214",
                function.declaration.name_span,
                "an operator is defined for a class of the program, not "
                + ", ".join(map(str, function.parameter_types)),
            )

    # Checking a function apart from its callers

    def check(self, function: UserFunction) -> None:
        if (
            all(is_data(t) for t in function.parameter_types)
            and is_data(function.result_type)
            and self.scalar_or_none(function)
        ):
            return
        self.abstract += 1
        try:
            values = [
                self.unknown_value(n, t)
                for n, t in zip(function.parameter_names, function.parameter_types, strict=True)
            ]
            self.run_body(function, values, 0)
        finally:
            self.abstract -= 1

    def unknown_value(self, name: str, type_: Type) -> Value:
        if isinstance(type_, FunctionType):
            ranges = (UNKNOWN,) * sum(len(component_types(p)) for p in type_.parameters)
            return FunctionValue(type_, self.dag.array(type_, name, None, ranges), ranges)
        return DataValue(type_, tuple(self.dag.runtime_scalar(None, base, name) for base in component_types(type_)))

    def scalar_or_none(self, function: UserFunction) -> DeviceFunction | None:
        """The function compiled for the device, None if its body builds functions."""
        if function.scalar is None and not function.is_host_only:
            if function in self.calls:
                self.recursion(function, function.declaration.name_span)
            self.calls.append(function)
            inference_stack, self.inference_stack = self.inference_stack, []
            try:
                function.scalar = DeviceFunctionLowering(self, function).compile()
            except NotDeviceCode:
                function.is_host_only = True
            finally:
                self.calls.pop()
                self.inference_stack = inference_stack
        return function.scalar

    def recursion(self, function: UserFunction, span: Span):
        path = " -> ".join(f.name for f in self.calls[self.calls.index(function) :] + [function])
        raise ProgramError(
            "CS0604", span, f"{function.name} calls itself ({path}): devices have no recursion", "write a loop"
        )

    def scalar_function(self, function: UserFunction, span: Span) -> DeviceFunction:
        found = self.scalar_or_none(function)
        if found is None:
            raise ProgramError(
                "CS0605",
                span,
                f"{function.name} builds functions, so it cannot reduce",
                "its body may use numbers, vectors and records only",
            )
        return found

    # Calls

    def call(self, checker: Checker, function: UserFunction, values: list[Value], span: Span) -> Value:
        """The value of a user's function: inlined, or one node if its statements run on the device."""
        data = all(isinstance(v, DataValue) for v in values) and is_data(function.result_type)
        if data and not self.is_expression(function) and self.scalar_or_none(function) is not None:
            return self.call_node(function, values)
        if checker.scalar:
            if not data or self.scalar_or_none(function) is None:
                raise NotDeviceCode
            return (
                self.call_node(function, values)
                if not self.is_expression(function)
                else self.inline_scalar(function, values, span)
            )
        if function in self.calls:
            self.recursion(function, span)
        return self.run_body(function, values, checker.guarded)

    def is_expression(self, function: UserFunction) -> bool:
        """A body that is one `return` is put in place of its call."""
        body = function.declaration.body
        return len(body) == 1 and isinstance(body[0], ast.Return)

    def inline_scalar(self, function: UserFunction, values: list[DataValue], span: Span) -> DataValue:
        if function in self.calls:
            self.recursion(function, span)
        scope = Scope()
        for name, type_, value in zip(function.parameter_names, function.parameter_types, values, strict=True):
            scope.names[name] = Variable(value, type_)
        inner = Checker(self, scope, scalar=True)
        tree = function.declaration.body[0].value
        if tree is None:
            raise ProgramError("CS0208", function.declaration.body[0].span, "`return` needs a value")
        self.calls.append(function)
        try:
            return inner.convert(inner.root(tree), function.result_type, tree.span)
        finally:
            self.calls.pop()

    def call_node(self, function: UserFunction, values: list[DataValue]) -> DataValue:
        parts = component_types(function.result_type)
        inputs = tuple(node for value in values for node in value.nodes)
        node = self.dag.apply(UserCall(function.scalar), tuple_type(parts), *inputs)
        return DataValue(function.result_type, tuple(self.dag.component(node, k) for k in range(len(parts))))

    def run_body(self, function: UserFunction, values: list[Value], guarded: int) -> Value:
        if len(self.calls) >= MAX_CALL_DEPTH:
            raise ProgramError("CS0604", function.declaration.name_span, f"calls nest deeper than {MAX_CALL_DEPTH}")
        scope = Scope()
        for name, type_, value in zip(function.parameter_names, function.parameter_types, values, strict=True):
            plain = type_.as_function_type if isinstance(type_, FunctionType) and not type_.is_array else type_
            scope.names[name] = Variable(value, plain)
        self.calls.append(function)
        try:
            done = HostExecutor(self, function, scope, guarded).run(function.declaration.body)
        except TooLarge:
            self.too_large(function.declaration.name_span)
        finally:
            self.calls.pop()
        if not isinstance(done, Returned):
            if self.abstract and function.declaration.body:
                if always_returns(function.declaration.body):
                    return self.unknown_value(function.name, function.result_type)
            missing_return(function)
        return done.value

    # What the host knows

    def zero(self, type_: Type) -> DataValue:
        return zero_of(NodeBuilder(self.dag), type_)

    def needs_evaluation(self, node: Node) -> bool:
        """Whether evaluating a node needs a reduction or an array."""
        if node not in self.needs_evaluation_cache:
            self.needs_evaluation_cache[node] = any(
                n.op in ("reduce", "function", "let") for n in topological_order([node])
            )
        return self.needs_evaluation_cache[node]

    def host_number(self, value: DataValue):
        return self.host_node(value.node)

    def host_node(self, node: Node):
        """The number of a node without bound variables; None while its function is checked apart from its callers."""
        if node.op == "scalar":
            return node.attribute.number
        if (
            node.op == "apply"
            and isinstance(node.attribute, str)
            and all(child.op == "scalar" for child in node.inputs)
        ):
            numbers = [child.attribute.number for child in node.inputs]
            return None if None in numbers else host_operation(node, numbers)
        if self.abstract and self.has_unknown(node):
            return None
        if node not in self.known:
            self.known[node] = self.target.evaluate_scalars([node])[0]
        return self.known[node]

    def has_unknown(self, node: Node) -> bool:
        for part in topological_order([node]):
            if part.op == "scalar" and part.attribute.number is None:
                return True
            if part.op == "function" and isinstance(part.attribute, ArraySource) and part.attribute.data is None:
                return True
            if (
                part.op == "variable"
                or part.op == "reduce"
                and any(not hasattr(v.range, "low") for v in part.attribute[1])
            ):
                return True
        return False

    def settle(self, scope: Scope) -> None:
        """Evaluate the functions that variables hold, so that a long loop does not build an endless DAG."""
        if self.abstract:
            return
        for _, variable in scope.variables():
            value = variable.value
            if (
                isinstance(value, FunctionValue)
                and value.node.op != "function"
                or (
                    isinstance(value, FunctionValue)
                    and isinstance(value.node.attribute, tuple)
                    and self.is_finite(value)
                )
            ):
                variable.value = self.target.materialize(value)

    def is_finite(self, value: FunctionValue) -> bool:
        return all(hasattr(r, "low") for r in value.domain) and not value.borders

    def open_file(self, name: str, span: Span) -> FunctionValue:
        """file("big.npy"): a function of its indices; nothing is read yet."""
        if name not in self.files:
            paths = [Path(name)] if Path(name).is_absolute() else [(self.folder or Path()) / name, Path(name)]
            path = next((p for p in paths if p.is_file()), None)
            if path is None:
                raise ProgramError(
                    "CS0502",
                    span,
                    f"the file {name} does not exist",
                    f"looked at {', '.join(dict.fromkeys(map(str, paths)))}",
                )
            self.files[name] = open_array(self, path, None, name, span)
        return self.files[name]


def host_operation(node: Node, numbers: list):
    """One elementary operation on numbers that the host knows."""
    operands = [DTYPES[child.type](wrapped(n, child.type)) for child, n in zip(node.inputs, numbers, strict=True)]
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(node.attribute, node.type, operands)).item()
