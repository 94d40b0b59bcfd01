"""Builds the nodes of elementary operations on data values, and folds constants (as LLVM's IRBuilder does)."""

from __future__ import annotations

from typing import Any

import numpy as np

from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.ir.dag import Dag, Node
from renderer.cdollar.ir.operations import OPERATIONS, evaluate, wrap_int32
from renderer.cdollar.ir.types import (
    BOOL,
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Data,
    Scalar,
    Vector,
    component_types,
    scalar_type_of,
    with_scalar_type,
)


class NodeBuilder:
    """Operations on scalars and vectors; a method returns None where the operation does not take the types."""

    def __init__(self, dag: Dag):
        self.dag = dag

    def constant(self, number: float, type_: str, untyped: bool = False) -> DataValue:
        """A number of the program's text; `untyped` if it may become float or double."""
        return DataValue(Scalar(type_), (self.dag.constant(number, type_, untyped),))

    def zero(self, type_: Data) -> DataValue:
        """false, 0 or 0.0 in each component."""
        return DataValue(type_, tuple(self.dag.constant(DTYPES[t](0).item(), t) for t in component_types(type_)))

    def apply(self, name: str, type_: str, *operands: Node) -> Node:
        """An operation's node on operands of one scalar type, folded if all of them are constants."""
        is_typed = name not in ("select", "convert")
        result = "bool" if is_typed and OPERATIONS[name].result == "bool" else type_
        if name == "select" and operands[0].is_constant:
            return operands[1] if operands[0].attribute.number else operands[2]
        if all(node.is_constant for node in operands):
            return self.constant_fold(name, result, operands)
        return self.dag.apply(name, result, *operands)

    def constant_fold(self, name: str, result: str, operands: tuple[Node, ...]) -> Node:
        """The constant that an operation on constants yields; untyped ones are computed in double precision."""
        untyped = result == "float" and all(n.attribute.untyped or n.type in ("int", "bool") for n in operands)
        numbers: list[Any] = []
        for node in operands:
            dtype = DTYPES["double" if untyped and node.type == "float" else node.type]
            numbers.append(dtype(wrap_int32(node.attribute.number, node.type)))
        with np.errstate(all="ignore"):
            folded = evaluate(name, "double" if untyped and name == "convert" else result, numbers)
        number = np.asarray(folded).item()
        return self.dag.constant(float(number) if result in FLOATS else number, result, untyped)

    def convert(self, value: DataValue, scalar_type: str) -> DataValue:
        """The value over another scalar type; constants are rounded once, so that 0.1 as double is 0.1."""
        nodes = tuple(self.convert_node(node, scalar_type) for node in value.nodes)
        return DataValue(with_scalar_type(value.type, scalar_type), nodes)

    def convert_node(self, node: Node, type_: str) -> Node:
        """A scalar node converted to another type."""
        if node.type == type_:
            return node
        if node.is_constant:
            number, untyped = node.attribute.number, node.attribute.untyped
            if type_ in FLOATS and node.type != "bool":
                if node.type == "float" and not untyped:
                    number = DTYPES["float"](number)
                return self.dag.constant(float(number), type_, untyped and type_ == "float")
            if type_ in INTEGERS and node.type in INTEGERS and 0 <= number < 2**31:
                return self.dag.constant(number, type_)
        return self.apply("convert", type_, node)

    def common_scalar_type(self, a: DataValue, b: DataValue) -> str | None:
        """The scalar type that both convert to implicitly."""
        left, right = scalar_type_of(a.type), scalar_type_of(b.type)
        if left == right:
            return left
        if left is None or right is None or "bool" in (left, right):
            return None
        if {left, right} == {"int", "uint"}:
            signed = a if left == "int" else b
            return "uint" if signed.is_literal and all(n.attribute.number >= 0 for n in signed.nodes) else None
        return max(left, right, key=NUMBERS.index)

    def binary(self, name: str, a: DataValue, b: DataValue) -> DataValue | None:
        """A binary operator; == and != of vectors compare them as a whole."""
        type_ = self.common_scalar_type(a, b)
        if type_ is None or type_ not in operand_types(name):
            return None
        if name in ("<<", ">>") and scalar_type_of(a.type) != type_:
            return None
        is_vector = isinstance(a.type, Vector) or isinstance(b.type, Vector)
        if is_vector and name in ("<", ">", "<=", ">=", "&&", "||"):
            return None
        result = self.elementwise(name, type_, [a, b])
        if result is not None and is_vector and name in ("==", "!="):
            return self.chain("&&" if name == "==" else "||", result.nodes)
        return result

    def elementwise(self, name: str, type_: str, values: list[DataValue]) -> DataValue | None:
        """An operation component by component; scalars are broadcast to the size of the vectors."""
        sizes = {value.type.size for value in values if isinstance(value.type, Vector)}
        if len(sizes) > 1:
            return None
        converted = [self.convert(value, type_).nodes for value in values]
        if not sizes:
            node = self.apply(name, type_, *(nodes[0] for nodes in converted))
            return DataValue(Scalar(node.type), (node,))
        size = sizes.pop()
        rows = zip(*(nodes if len(nodes) == size else nodes * size for nodes in converted), strict=True)
        return DataValue(Vector(type_, size), tuple(self.apply(name, type_, *row) for row in rows))

    def chain(self, name: str, nodes: tuple[Node, ...]) -> DataValue:
        """All nodes combined by && or ||."""
        result = nodes[0]
        for node in nodes[1:]:
            result = self.apply(name, "bool", result, node)
        return DataValue(BOOL, (result,))

    def unary(self, name: str, value: DataValue) -> DataValue | None:
        """A unary operator."""
        type_ = scalar_type_of(value.type)
        if type_ is None or type_ not in operand_types(name) or (name, type_) == ("-", "uint"):
            return None
        if name == "+":
            return value
        operation = "neg" if name == "-" else name
        return DataValue(value.type, tuple(self.apply(operation, type_, node) for node in value.nodes))

    def function(self, name: str, values: list[DataValue]) -> DataValue | None:
        """An operation that is written as a call: `max(a, b)`."""
        operation = OPERATIONS[name]
        types = [scalar_type_of(value.type) for value in values]
        if len(values) != len(operation.parameters) or None in types or "bool" in types:
            return None
        type_ = types[0]
        for value in values[1:]:
            type_ = type_ and self.common_scalar_type(DataValue(Scalar(type_), values[0].nodes[:1]), value)
        if operation.parameters[0] == "r" and type_ in INTEGERS:
            type_ = "float"
        return self.elementwise(name, type_, values) if type_ and type_ in operation.types() else None

    def select(self, condition: DataValue, if_true: DataValue, if_false: DataValue) -> DataValue | None:
        """`condition ? if_true : if_false`."""
        if if_true.type != if_false.type:
            type_ = self.common_scalar_type(if_true, if_false)
            if type_ is None:
                return None
            if_true, if_false = self.convert(if_true, type_), self.convert(if_false, type_)
            if if_true.type != if_false.type:
                return None
        pairs = zip(if_true.nodes, if_false.nodes, strict=True)
        nodes = (a if a is b else self.apply("select", a.type, condition.node, a, b) for a, b in pairs)
        return DataValue(if_true.type, tuple(nodes))

    def with_default_type(self, value: DataValue) -> DataValue:
        """A variable's value: constants whose suffix leaves float or double open become float."""
        if not value.is_untyped:
            return value
        return DataValue(value.type, tuple(self.dag.constant(n.attribute.number, n.type) for n in value.nodes))


def operand_types(name: str) -> tuple[str, ...]:
    """The scalar types that an operator takes."""
    if name in ("&&", "||", "!"):
        return ("bool",)
    if name in ("&", "|", "^"):
        return ("bool", *INTEGERS)
    if name in ("<<", ">>", "~"):
        return INTEGERS
    return ("bool", *NUMBERS) if name in ("==", "!=") else NUMBERS
