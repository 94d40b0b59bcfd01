"""Scalar functions: bodies whose loops and branches run on the device, compiled to statements over slots."""

from __future__ import annotations

from renderer.cdollar.checker.checker import Checker
from renderer.cdollar.checker.host_executor import (
    always_returns,
    assignable,
    combined,
    declare_once,
    missing_return,
    with_default_type,
)
from renderer.cdollar.checker.values import DataValue, NotDeviceCode, Scope, UserFunction, Variable
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.device_function import BranchOp, DeviceFunction, JumpOp, Local, LoopOp, ReturnOp, StoreOp
from renderer.cdollar.ir.types import Type, component_types, is_data


class DeviceFunctionLowering:
    """Statements of a scalar function to StoreOp, BranchOp, LoopOp, JumpOp, ReturnOp over typed nodes."""

    def __init__(self, compilation, function: UserFunction):
        self.compilation, self.function = compilation, function
        self.scope = Scope()
        self.checker = Checker(compilation, self.scope, scalar=True)
        self.locals: list[Local] = []
        self.loops = 0

    def compile(self) -> DeviceFunction:
        parameters: list[Local] = []
        for name, type_ in zip(self.function.parameter_names, self.function.parameter_types, strict=True):
            value = self.new_local(name, type_)
            parameters += [node.attribute for node in value.nodes]
            self.scope.names[name] = Variable(value, type_)
        body = self.block(self.function.declaration.body)
        if not always_returns(self.function.declaration.body):
            missing_return(self.function)
        span, others = self.function.declaration.name_span, [s for s in self.locals if s not in parameters]
        return DeviceFunction(self.function.name, tuple(parameters), self.function.result_type, span, body, others)

    def new_local(self, name: str, type_: Type) -> DataValue:
        slots = [Local(name if k == 0 else f"{name}{k}", base) for k, base in enumerate(component_types(type_))]
        self.locals += slots
        return DataValue(type_, tuple(self.compilation.dag.intern("local", slot.type, (), slot) for slot in slots))

    def block(self, body: list[ast.AstNode]) -> tuple:
        outer, self.scope = self.scope, Scope(self.scope)
        found: list = []
        for tree in body:
            self.checker.scope = self.scope
            found += getattr(self, "do_" + type(tree).__name__)(tree)
        self.scope = self.checker.scope = outer
        return tuple(found)

    def value(self, tree: ast.AstNode) -> DataValue:
        self.checker.scope = self.scope
        found = self.checker.settled(self.checker.root(tree), tree.span)
        if not isinstance(found, DataValue):
            raise NotDeviceCode
        return found

    def condition(self, tree: ast.AstNode) -> Node:
        value = self.value(tree)
        self.checker.truth(value, tree.span)
        return value.node

    def do_VariableDeclaration(self, tree: ast.VariableDeclaration) -> list:
        if tree.head is not None or tree.kind == "let":
            raise NotDeviceCode
        declare_once(self.scope, tree)
        if tree.kind == "var":
            value = with_default_type(self.compilation, self.value(tree.value))
            type_ = value.type
        else:
            type_ = self.compilation.type_of(tree.type)
            if not is_data(type_):
                raise NotDeviceCode
            value = None
            if tree.value is not None:
                value = self.checker.convert(self.value(tree.value), type_, tree.value.span)
        local = self.new_local(tree.name, type_)
        self.scope.names[tree.name] = Variable(local, type_)
        if value is None:
            value = self.compilation.zero(type_)
        return [StoreOp(tuple(n.attribute for n in local.nodes), value.nodes)]

    def do_Assignment(self, tree: ast.Assignment) -> list:
        variable = assignable(self.compilation, self.scope, tree)
        value = self.value(combined(tree))
        value = self.checker.convert(value, variable.type, tree.value.span)
        return [StoreOp(tuple(n.attribute for n in variable.value.nodes), value.nodes)]

    def do_If(self, tree: ast.If) -> list:
        return [BranchOp(self.condition(tree.condition), self.block(tree.if_true), self.block(tree.if_false))]

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
        return [*found, LoopOp(condition, step, body, tree.test_first)]

    def do_Jump(self, tree: ast.Jump) -> list:
        if not self.loops:
            raise ProgramError("CS0207", tree.span, f"`{tree.kind}` stands outside of a loop")
        return [JumpOp(tree.kind)]

    def do_Return(self, tree: ast.Return) -> list:
        if tree.value is None:
            raise ProgramError(
                "CS0208", tree.span, f"`return` needs a value: {self.function.name} returns {self.function.result_type}"
            )
        value = self.checker.convert(self.value(tree.value), self.function.result_type, tree.value.span)
        return [ReturnOp(value.nodes)]

    def do_Block(self, tree: ast.Block) -> list:
        return list(self.block(tree.body))

    def do_Restriction(self, tree: ast.Restriction) -> list:
        raise NotDeviceCode
