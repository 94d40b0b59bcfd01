"""Lowers functions of data to device functions: their loops and branches run on the target, at every point."""

from __future__ import annotations

from renderer.cdollar.checker.expressions import check_condition
from renderer.cdollar.checker.host_executor import StatementLowering, always_returns, fail_missing_return
from renderer.cdollar.checker.program import Body, NotDeviceCode, Program, UserCalls, UserFunction
from renderer.cdollar.checker.scopes import Variable
from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.types import Data, component_types


class DeviceFunctionLowering(StatementLowering):
    """Lowers one function; raises NotDeviceCode if its body builds functions."""

    function: UserFunction

    def __init__(self, program: Program, user_calls: UserCalls, function: UserFunction):
        super().__init__(program, user_calls, function, Body(in_device_code=True))
        if not isinstance(function.result_type, Data):
            raise NotDeviceCode
        self.result_type: Data = function.result_type
        self.locals: list[device.Local] = []

    def lower(self) -> device.DeviceFunction:
        """The device function; raises CS0208 if a path does not return."""
        declaration = self.function.declaration
        for name, type_ in zip(self.function.parameter_names, self.function.parameter_types, strict=True):
            if not isinstance(type_, Data):
                raise NotDeviceCode
            self.body.scope.names[name] = Variable(self._new_local(name, type_), type_)
        parameters = tuple(self.locals)
        body = self._block(declaration.body)
        if not always_returns(declaration.body):
            fail_missing_return(self.function)
        others = self.locals[len(parameters) :]
        return device.DeviceFunction(
            self.function.name, parameters, self.result_type, declaration.name_span, body, others
        )

    def _new_local(self, name: str, type_: Data) -> DataValue:
        new = [device.Local(f"{name}{k}" if k else name, scalar) for k, scalar in enumerate(component_types(type_))]
        self.locals += new
        return DataValue(type_, tuple(self.dag.intern("local", local.type, (), local) for local in new))

    def _block(self, statements: list[ast.AstNode]) -> tuple[device.Statement, ...]:
        with self.body.block():
            return tuple(self._statements(statements))

    def _statements(self, statements: list[ast.AstNode]) -> list[device.Statement]:
        return [op for tree in statements for op in getattr(self, "visit_" + type(tree).__name__)(tree)]

    def _value(self, tree: ast.AstNode, type_: Data | None = None) -> DataValue:
        value = self.expressions.lower_operand(tree)
        if not isinstance(value, DataValue):
            raise NotDeviceCode
        return value if type_ is None else self.expressions.convert_data(value, type_, tree.span)

    def _condition(self, tree: ast.AstNode) -> Node:
        return check_condition(self._value(tree), tree.span).node

    def visit_VariableDeclaration(self, tree: ast.VariableDeclaration) -> list[device.Statement]:
        """A local variable; without a value it starts as zero."""
        if tree.parameters is not None or tree.kind == "let":
            raise NotDeviceCode
        self.declare_once(tree)
        if tree.type is None:
            assert tree.value is not None
            value = self.builder.with_default_type(self._value(tree.value))
        else:
            type_ = self.program.types.resolve(tree.type)
            if not isinstance(type_, Data):
                raise NotDeviceCode
            value = self.builder.zero(type_) if tree.value is None else self._value(tree.value, type_)
        local = self._new_local(tree.name, value.type)
        self.body.scope.names[tree.name] = Variable(local, value.type, is_mutable=tree.is_mutable)
        return [store(local, value)]

    def visit_Assignment(self, tree: ast.Assignment) -> list[device.Statement]:
        """Stores to a local variable."""
        variable, value = self.lower_assignment(tree)
        assert isinstance(value, DataValue)
        return [store(variable.value, value)]

    def visit_If(self, tree: ast.If) -> list[device.Statement]:
        """A branch."""
        return [device.BranchOp(self._condition(tree.condition), self._block(tree.if_true), self._block(tree.if_false))]

    def visit_Loop(self, tree: ast.Loop) -> list[device.Statement]:
        """The start, then the loop, in a scope of their own."""
        with self.body.block():
            start = self._statements(tree.start)
            condition = self._condition(tree.condition) if tree.condition is not None else None
            step = self._block(tree.step)
            self.loop_depth += 1
            body = self._block(tree.body)
            self.loop_depth -= 1
        return [*start, device.LoopOp(condition, step, body, tree.test_first)]

    def visit_Jump(self, tree: ast.Jump) -> list[device.Statement]:
        """`break` or `continue`."""
        return [device.JumpOp(self.jump_kind(tree))]

    def visit_Return(self, tree: ast.Return) -> list[device.Statement]:
        """`return value;`."""
        if tree.value is None:
            message = f"`return` needs a value: {self.function.name} returns {self.result_type}"
            raise ProgramError("CS0208", tree.span, message)
        return [device.ReturnOp(self._value(tree.value, self.result_type).nodes)]

    def visit_Block(self, tree: ast.Block) -> list[device.Statement]:
        """Statements in a scope of their own."""
        return list(self._block(tree.body))

    def visit_Restriction(self, tree: ast.Restriction) -> list[device.Statement]:
        """Device code has no bound variables."""
        raise NotDeviceCode


def store(local: DataValue, value: DataValue) -> device.StoreOp:
    """Assigns a local variable's components."""
    return device.StoreOp(tuple(node.attribute for node in local.nodes), value.nodes)
