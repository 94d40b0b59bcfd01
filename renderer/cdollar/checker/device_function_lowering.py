"""Scalar functions: bodies whose loops and branches run on the device, compiled to statements over slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from renderer.cdollar.checker.checker import Checker
from renderer.cdollar.checker.host_executor import (
    always_returns,
    assignable,
    combined,
    declare_once,
    firm,
    missing_return,
)
from renderer.cdollar.checker.values import DataValue, NotScalar, Scope, UserFunction, Variable
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.types import Type, components, is_data

serial = count()


@dataclass(frozen=True)
class Slot:
    """One scalar component of a local variable of a scalar function."""

    name: str
    type: str
    serial: int


@dataclass(frozen=True)
class Store:
    """Locals get new values, all at once."""

    slots: tuple[Slot, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Branch:
    condition: Node
    yes: tuple
    no: tuple


@dataclass(frozen=True)
class Repeat:
    condition: Node | None
    step: tuple
    body: tuple
    test_first: bool


@dataclass(frozen=True)
class Leave:
    kind: str  # break continue


@dataclass(frozen=True)
class Give:
    nodes: tuple[Node, ...]


@dataclass(eq=False)
class ScalarFunction:
    """A function of data with statements: runs at every point, on any target."""

    name: str
    parameters: tuple[Slot, ...]
    result: Type
    span: Span
    body: tuple = ()
    locals: list[Slot] = field(default_factory=list)
    serial: int = field(default_factory=lambda: next(serial))


class ScalarCompiler:
    """Statements of a scalar function to Store, Branch, Repeat, Leave, Give over typed nodes."""

    def __init__(self, unit, function: UserFunction):
        self.unit, self.function = unit, function
        self.scope = Scope()
        self.checker = Checker(unit, self.scope, scalar=True)
        self.locals: list[Slot] = []
        self.loops = 0

    def compile(self) -> ScalarFunction:
        parameters: list[Slot] = []
        for name, type_ in zip(self.function.names, self.function.types, strict=True):
            value = self.new_local(name, type_)
            parameters += [node.value for node in value.nodes]
            self.scope.names[name] = Variable(value, type_)
        found = ScalarFunction(
            self.function.name, tuple(parameters), self.function.result, self.function.item.name_span
        )
        body = self.block(self.function.item.body)
        if not always_returns(self.function.item.body):
            missing_return(self.function)
        found.body, found.locals = body, [s for s in self.locals if s not in parameters]
        return found

    def new_local(self, name: str, type_: Type) -> DataValue:
        slots = [Slot(name if k == 0 else f"{name}{k}", base, next(serial)) for k, base in enumerate(components(type_))]
        self.locals += slots
        return DataValue(type_, tuple(self.unit.dag.make("local", slot.type, (), slot) for slot in slots))

    def block(self, body: list[ast.Tree]) -> tuple:
        outer, self.scope = self.scope, Scope(self.scope)
        found: list = []
        for tree in body:
            self.checker.scope = self.scope
            found += getattr(self, "do_" + type(tree).__name__)(tree)
        self.scope = self.checker.scope = outer
        return tuple(found)

    def value(self, tree: ast.Tree) -> DataValue:
        self.checker.scope = self.scope
        found = self.checker.settled(self.checker.root(tree), tree.span)
        if not isinstance(found, DataValue):
            raise NotScalar
        return found

    def condition(self, tree: ast.Tree) -> Node:
        value = self.value(tree)
        self.checker.truth(value, tree.span)
        return value.node

    def do_Declare(self, tree: ast.Declare) -> list:
        if tree.head is not None or tree.kind == "let":
            raise NotScalar
        declare_once(self.scope, tree)
        if tree.kind == "var":
            value = firm(self.unit, self.value(tree.value))
            type_ = value.type
        else:
            type_ = self.unit.type_of(tree.type)
            if not is_data(type_):
                raise NotScalar
            value = None
            if tree.value is not None:
                value = self.checker.convert(self.value(tree.value), type_, tree.value.span)
        local = self.new_local(tree.name, type_)
        self.scope.names[tree.name] = Variable(local, type_)
        if value is None:
            value = self.unit.zero(type_)
        return [Store(tuple(n.value for n in local.nodes), value.nodes)]

    def do_Assign(self, tree: ast.Assign) -> list:
        variable = assignable(self.unit, self.scope, tree)
        value = self.value(combined(tree))
        value = self.checker.convert(value, variable.type, tree.value.span)
        return [Store(tuple(n.value for n in variable.value.nodes), value.nodes)]

    def do_If(self, tree: ast.If) -> list:
        return [Branch(self.condition(tree.condition), self.block(tree.yes), self.block(tree.no))]

    def do_Loop(self, tree: ast.Loop) -> list:
        outer, self.scope = self.scope, Scope(self.scope)
        found: list = []
        for start in tree.start:
            self.checker.scope = self.scope
            found += getattr(self, "do_" + type(start).__name__)(start)
        condition = self.condition(tree.condition) if tree.condition is not None else None
        step = self.block(tree.step)
        self.loops += 1
        body = self.block(tree.body)
        self.loops -= 1
        self.scope = self.checker.scope = outer
        return [*found, Repeat(condition, step, body, tree.test_first)]

    def do_Jump(self, tree: ast.Jump) -> list:
        if not self.loops:
            raise ProgramError("CS0207", tree.span, f"`{tree.kind}` stands outside of a loop")
        return [Leave(tree.kind)]

    def do_Return(self, tree: ast.Return) -> list:
        if tree.value is None:
            raise ProgramError(
                "CS0208", tree.span, f"`return` needs a value: {self.function.name} returns {self.function.result}"
            )
        value = self.checker.convert(self.value(tree.value), self.function.result, tree.value.span)
        return [Give(value.nodes)]

    def do_Block(self, tree: ast.Block) -> list:
        return list(self.block(tree.body))

    def do_Restriction(self, tree: ast.Restriction) -> list:
        raise NotScalar
