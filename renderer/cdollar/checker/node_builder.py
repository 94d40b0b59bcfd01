"""Builds the nodes of operations and built-in functions on data values, and folds constants (as LLVM's IRBuilder).

A method takes DataValues (a type and a DAG node for each component) and returns the DataValue of the result. An
operation on constants becomes a constant. ir/operations.py has the table of the operations.
"""

import math
from functools import reduce

from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import SourceFile
from renderer.cdollar.frontend.hints import USAGE
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import Dag, Node, Nodes
from renderer.cdollar.ir.operations import OPERATIONS, evaluate_numbers
from renderer.cdollar.ir.primitives import SCATTERS
from renderer.paths import SHADERS

CONSTANTS = {"pi": math.pi, "tau": 2 * math.pi, "PI": math.pi}

# Built-in functions: name -> usage, for messages. First the operations that are written as calls: not +, < or `neg`.
FUNCTIONS = {
    name: f"{name}({', '.join('xyz'[: len(operation.parameters)])}) of numbers"
    for name, operation in OPERATIONS.items()
    if name.isalnum() and name != "neg"
}
SOURCE = SourceFile("builtins.cb", (SHADERS / "cdollar" / "builtins.cb").read_text(encoding="utf-8"))
# The functions that are defined in C$, by name.
COMPOSED = {
    d.name: d.value for d in parse(SOURCE) if isinstance(d, ast.VariableDeclaration) and isinstance(d.value, ast.Lambda)
}
PRIMITIVES = {name: USAGE[name] for name in ("scan", "sort", "argsort", "histogram", *SCATTERS.values())}
FUNCTIONS |= {name: f"{name}({', '.join(p.name for p in value.parameters)})" for name, value in COMPOSED.items()}
FUNCTIONS |= USAGE  # of the functions that the lowering builds (assets/tables/hints.toml)


class NodeBuilder:
    """Operations on scalars and vectors; a method returns None where the operation does not take the types.

    From the innermost outwards: apply() makes the node of an operation on nodes that have its type already;
    elementwise() converts values to a type and applies an operation to each component; unary(), binary() and function()
    find the type, for an operator or for an operation that is written as a call; call() takes the name of any built-in
    function on values: of an operation, of dot or cross, or of a definition in builtins.cb. The attribute of a constant
    node has its `number`, and `untyped`: True without a suffix, so that it may become float or double.
    """

    def __init__(self, dag: Dag):
        self.dag = dag

    def constant(self, number: float, type_: str, untyped: bool = False) -> DataValue:
        """A number of the program's text; `untyped` if it may become float or double."""
        return DataValue(ty.Scalar(type_), (self.dag.constant(number, type_, untyped),))

    def zero(self, type_: ty.Data) -> DataValue:
        """false, 0 or 0.0 in each component."""
        return DataValue(type_, tuple(self.dag.constant(ty.DTYPES[t](0).item(), t) for t in ty.component_types(type_)))

    def apply(self, name: str, type_: str, *operands: Node) -> Node:
        """An operation's node on operands of one scalar type, folded if all of them are constants."""
        is_in_table = name not in ("select", "convert")
        result = "bool" if is_in_table and OPERATIONS[name].result == "bool" else type_
        if name == "select" and operands[0].is_constant:
            return operands[1] if operands[0].attribute.number else operands[2]
        if all(node.is_constant for node in operands):
            return self.constant_fold(name, result, operands)
        return self.dag.apply(name, result, *operands)

    def constant_fold(self, name: str, result: str, operands: Nodes) -> Node:
        """The constant of an operation on constants, computed in double precision if all floats are untyped."""
        untyped = result == "float" and all(n.attribute.untyped or n.type in ("int", "bool") for n in operands)
        types = ["double" if untyped and node.type == "float" else node.type for node in operands]
        type_ = "double" if untyped and name == "convert" else result
        number = evaluate_numbers(name, type_, [node.attribute.number for node in operands], types)
        is_float = ty.promoted_type(result) in ty.FLOATS
        return self.dag.constant(float(number) if is_float else number, result, untyped)

    def convert(self, value: DataValue, scalar_type: str) -> DataValue:
        """The value over another scalar type; constants are rounded once, so that 0.1 as double is 0.1."""
        nodes = tuple(self.convert_node(node, scalar_type) for node in value.nodes)
        return DataValue(ty.with_scalar_type(value.type, scalar_type), nodes)

    def convert_node(self, node: Node, type_: str) -> Node:
        """A scalar node converted to another type."""
        if node.type == type_:
            return node
        if node.type in ty.PROMOTED or type_ in ty.PROMOTED:
            return self._convert_stored(node, type_)
        if node.is_constant:
            number, untyped = node.attribute.number, node.attribute.untyped
            if type_ in ty.FLOATS and node.type != "bool":
                if node.type == "float" and not untyped:
                    number = ty.DTYPES["float"](number)  # 0.1f as double is the float nearest to 0.1
                return self.dag.constant(float(number), type_, untyped and type_ == "float")
            # numbers that every integer type has
            if type_ in ty.INTEGERS and node.type in ty.INTEGERS and 0 <= number < 2**31:
                return self.dag.constant(number, type_)
        return self.apply("convert", type_, node)

    def _convert_stored(self, node: Node, type_: str) -> Node:
        """A conversion from or to half (by way of float) or byte (by way of int).

        To byte, a float is clamped to 0..255 and an int wraps.
        """
        if node.type in ty.PROMOTED:
            promoted = self.apply("convert", ty.PROMOTED[node.type], node)
            return self.convert_node(promoted, type_)
        is_float = node.type in ty.FLOATS
        node = self.convert_node(node, ty.PROMOTED[type_])
        if node.is_constant and node.attribute.untyped:  # rounded to float first, as a number at run time is
            node = self.dag.constant(ty.DTYPES["float"](node.attribute.number).item(), "float")
        if type_ == "byte" and is_float:
            low, high = (self.dag.constant(number, "int") for number in (0, 255))
            node = self.apply("min", "int", self.apply("max", "int", node, low), high)
        return self.apply("convert", type_, node)

    def promoted(self, value: DataValue) -> DataValue:
        """The value in the type in which operations compute: half as float, byte as int."""
        scalar = ty.scalar_type_of(value.type)
        return self.convert(value, ty.PROMOTED[scalar]) if scalar in ty.PROMOTED else value

    def common_scalar_type(self, a: DataValue, b: DataValue) -> str | None:
        """The scalar type that both convert to implicitly."""
        left, right = ty.scalar_type_of(a.type), ty.scalar_type_of(b.type)
        if left == right:
            return left
        if left is None or right is None or "bool" in (left, right):
            return None
        if {left, right} == {"int", "uint"}:  # no implicit conversion, but for a literal as in `x + 1`
            signed = a if left == "int" else b
            return "uint" if signed.is_literal and all(n.attribute.number >= 0 for n in signed.nodes) else None
        return max(left, right, key=ty.NUMBERS.index)  # from the narrowest to the widest type

    def binary(self, name: str, a: DataValue, b: DataValue) -> DataValue | None:
        """A binary operator; == and != of vectors yield one bool."""
        a, b = self.promoted(a), self.promoted(b)
        type_ = self.common_scalar_type(a, b)
        if type_ is None or type_ not in operand_types(name):
            return None
        if name in ("<<", ">>") and ty.scalar_type_of(a.type) != type_:
            return None  # the number of bits does not change the type of the number
        is_vector = isinstance(a.type, ty.Vector) or isinstance(b.type, ty.Vector)
        if is_vector and name in ("<", ">", "<=", ">=", "&&", "||"):
            return None
        result = self.elementwise(name, type_, [a, b])
        if result is not None and is_vector and name in ("==", "!="):
            return self.chain("&&" if name == "==" else "||", result.nodes)
        return result

    def elementwise(self, name: str, type_: str, values: list[DataValue]) -> DataValue | None:
        """An operation component by component; scalars are broadcast to the size of the vectors."""
        sizes = {value.type.size for value in values if isinstance(value.type, ty.Vector)}
        if len(sizes) > 1:
            return None
        size, converted = max(sizes, default=1), [self.convert(value, type_).nodes for value in values]
        rows = zip(*(nodes if len(nodes) == size else nodes * size for nodes in converted), strict=True)
        nodes = tuple(self.apply(name, type_, *row) for row in rows)
        return DataValue(ty.Vector(type_, size) if sizes else ty.Scalar(nodes[0].type), nodes)

    def chain(self, name: str, nodes: Nodes) -> DataValue:
        """All nodes, of one scalar type, combined by an operator from the first to the last."""
        node = reduce(lambda a, b: self.apply(name, a.type, a, b), nodes)
        return DataValue(ty.Scalar(node.type), (node,))

    def unary(self, name: str, value: DataValue) -> DataValue | None:
        """A unary operator."""
        value = self.promoted(value)
        type_ = ty.scalar_type_of(value.type)
        if type_ is None or type_ not in operand_types(name) or (name, type_) == ("-", "uint"):
            return None
        if name == "+":
            return value
        operation = "neg" if name == "-" else name
        return DataValue(value.type, tuple(self.apply(operation, type_, node) for node in value.nodes))

    def function(self, name: str, values: list[DataValue]) -> DataValue | None:
        """An operation that is written as a call: `max(a, b)`."""
        operation, values = OPERATIONS[name], [self.promoted(value) for value in values]
        types = [ty.scalar_type_of(value.type) for value in values]
        if len(values) != len(operation.parameters) or None in types or "bool" in types:
            return None
        type_ = types[0]
        for value in values[1:]:
            # a value of the common type so far; its node shows whether it is a literal
            type_ = type_ and self.common_scalar_type(DataValue(ty.Scalar(type_), values[0].nodes[:1]), value)
        if operation.parameters[0] == "r" and type_ in ty.INTEGERS:  # "r": it takes floating point only
            type_ = "float"
        return self.elementwise(name, type_, values) if type_ and type_ in operation.types() else None

    def operation(self, name: str, values: list[DataValue]) -> DataValue | None:
        """An operation that is written as a call or as a binary operator."""
        return self.function(name, values) if name.isalnum() else self.binary(name, *values)

    def select(self, condition: DataValue, if_true: DataValue, if_false: DataValue) -> DataValue | None:
        """`condition ? if_true : if_false`."""
        if if_true.type != if_false.type:
            if_true, if_false = self.promoted(if_true), self.promoted(if_false)
            type_ = self.common_scalar_type(if_true, if_false)
            if type_ is None:
                return None
            if_true, if_false = self.convert(if_true, type_), self.convert(if_false, type_)
            if if_true.type != if_false.type:
                return None
        return self.where(condition.node, if_true, if_false)

    def where(self, condition: Node, value: DataValue, other: DataValue) -> DataValue:
        """`condition ? value : other` of two values of one type."""
        pairs = zip(value.nodes, other.nodes, strict=True)
        nodes = (a if a is b else self.apply("select", a.type, condition, a, b) for a, b in pairs)
        return DataValue(value.type, tuple(nodes))

    def with_default_type(self, value: DataValue) -> DataValue:
        """A variable's value: untyped constants, without a suffix that says float or double, become float."""
        if not value.is_literal or not all(node.attribute.untyped for node in value.nodes):
            return value
        return DataValue(value.type, tuple(self.dag.constant(n.attribute.number, n.type) for n in value.nodes))

    # Built-in functions: None for types that they do not take

    def call(self, name: str, values: list[DataValue]) -> DataValue | None:
        """The built-in function `name` of these values."""
        values = [self.promoted(value) for value in values]
        if name in OPERATIONS:
            return self.function(name, values)
        if any(ty.scalar_type_of(v.type) in (None, "bool") for v in values):
            return None
        if name in ("dot", "cross"):
            return (self.dot if name == "dot" else self.cross)(*values) if len(values) == 2 else None
        definition = COMPOSED.get(name)
        if definition is None or len(definition.parameters) != len(values):
            return None
        names = (parameter.name for parameter in definition.parameters)
        return self._evaluate(definition.body, dict(zip(names, values, strict=True)))

    def _evaluate(self, tree: ast.AstNode, values: dict[str, DataValue]) -> DataValue | None:
        """The expression of a definition in COMPOSED."""
        if isinstance(tree, ast.Literal):
            assert isinstance(tree.value, float)
            return self.constant(tree.value, "float", untyped=True)
        if isinstance(tree, ast.Name):
            return values.get(tree.name) or self.constant(CONSTANTS[tree.name], "float", untyped=True)
        if isinstance(tree, ast.LetIn):
            value = self._evaluate(tree.value, values)
            return self._evaluate(tree.body, values | {tree.name: value}) if value is not None else None
        if isinstance(tree, ast.Binary):
            name, operands = tree.operator, [tree.left, tree.right]
        else:
            assert isinstance(tree, ast.Call) and isinstance(tree.callee, ast.Name), "definitions have no other trees"
            name, operands = tree.callee.name, tree.arguments
        known = [v for v in (self._evaluate(operand, values) for operand in operands) if v is not None]
        if len(known) < len(operands):
            return None
        if name == "real":  # used by builtins.cb alone: converts integers to float
            is_integer = ty.scalar_type_of(known[0].type) in ty.INTEGERS
            return self.convert(known[0], "float") if is_integer else known[0]
        return self.operation(name, known) if name in OPERATIONS else self.call(name, known)

    def dot(self, a: DataValue, b: DataValue) -> DataValue | None:
        """The sum of the products of two vectors' components, from the first to the last."""
        if not isinstance(a.type, ty.Vector) or not isinstance(b.type, ty.Vector) or a.type.size != b.type.size:
            return None
        products = self.binary("*", a, b)
        return self.chain("+", products.nodes) if products is not None else None

    def cross(self, a: DataValue, b: DataValue) -> DataValue | None:
        """The cross product of two vectors of size 3."""
        if any(not isinstance(x.type, ty.Vector) or x.type.size != 3 for x in (a, b)):
            return None
        a1, b1 = (DataValue(x.type, x.nodes[1:] + x.nodes[:1]) for x in (a, b))
        a2, b2 = (DataValue(x.type, x.nodes[2:] + x.nodes[:2]) for x in (a, b))
        left, right = self.binary("*", a1, b2), self.binary("*", a2, b1)
        return self.binary("-", left, right) if left and right else None


def operand_types(name: str) -> tuple[str, ...]:
    """The scalar types that an operator takes."""
    types = OPERATIONS[name].types()
    return ("bool", *types) if name in ("&", "|", "^", "==", "!=") else types
