"""Expressions that yield arrays: literals, `[[1, 0], [0, 1]]`, and calls of scan, sort, argsort, histogram, scatters.

The elements of a literal are numbers or records that the host knows. ir/primitives.py has the nodes of scan and sort.
"""

import numpy as np

from renderer.cdollar.checker.arrays import evaluated_array
from renderer.cdollar.checker.node_builder import PRIMITIVES
from renderer.cdollar.checker.program import Body
from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import UNKNOWN, BoundVariable, Range
from renderer.cdollar.ir.primitives import SCATTERS, SUMMED, primitive
from renderer.cdollar.lowering.conversions import convert_data
from renderer.cdollar.lowering.domains import host_int, lower_resolved_expression
from renderer.cdollar.lowering.functions import promote

# Literals

MAX_RANK = 4  # dimensions of a literal


def lower_array_literal(body: Body, tree: ast.ArrayLiteral, expected: ty.Type | None) -> FunctionValue:
    """The array of a literal, with indices from 0; raises CS0320.

    The elements have the expected element type if there is one, else the widest of their types.
    """
    body.require_host()
    shape, leaves = _flatten(tree)
    values = [lower_resolved_expression(body, leaf) for leaf in leaves]
    if all(isinstance(v, FunctionValue) for v in values) and len(shape) == 1:
        return _rows(body, tree, [v for v in values if isinstance(v, FunctionValue)])
    data = [v for v in values if isinstance(v, DataValue)]
    for value, leaf in zip(values, leaves, strict=True):
        if not isinstance(value, DataValue):
            message = f"an element of an array is a number or a record, but {leaf.span.excerpt} is {value.type}"
            raise ProgramError("CS0320", leaf.span, message, "nest brackets for more dimensions: `[[1, 2], [3, 4]]`")
    wanted = expected.result if isinstance(expected, ty.FunctionType) else None
    element = wanted or next((t.type for t in data if all(ty.widening(o.type, t.type) is not None for o in data)), None)
    if element is None:
        types = ", ".join(dict.fromkeys(str(v.type) for v in data))
        message = f"the elements of this array have the types {types}"
        raise ProgramError("CS0320", tree.span, message, "cast them to one")
    converted = [convert_data(body, value, element, leaf.span) for value, leaf in zip(data, leaves, strict=True)]
    return _literal_array(body, tree.span, shape, converted)


def _rows(body: Body, tree: ast.ArrayLiteral, rows: list[FunctionValue]) -> FunctionValue:
    """`[a, b]`: functions over one domain become the rows of a function with one more dimension in front.

    Raises CS0320 if the types or domains differ.
    """
    first = rows[0]
    for row, leaf in zip(rows, tree.elements, strict=True):
        if row.type.as_function_type != first.type.as_function_type or not _same_domain(row, first):
            domains = " and ".join(" x ".join(map(str, f.domain_with_borders)) for f in (first, row))
            message = f"the rows of an array have one type and domain, but these are {first.type} over {domains}"
            if row.type.as_function_type != first.type.as_function_type:
                message = f"the rows of an array have one type, but {first.type} and {row.type} are given"
            raise ProgramError("CS0320", leaf.span, message)
    number = BoundVariable("_", "int", Range(0, len(rows)))
    index = body.dag.bound_variable(number)

    def row_at_index(values: list[DataValue]) -> DataValue:
        """The value of row number `index` at a point: (index == 0) ? a : (index == 1) ? b : c."""
        result = values[-1]
        for k in range(len(values) - 2, -1, -1):
            is_row = body.builder.apply("==", "int", index, body.dag.constant(k, "int"))
            result = body.builder.where(is_row, values[k], result)
        return result

    columns = promote(body, list(rows), row_at_index, tree.span)  # the function that has this value at every point
    assert isinstance(columns, FunctionValue) and isinstance(columns.node.attribute, tuple), "rows are functions"
    type_ = ty.FunctionType(columns.type.result, (ty.INT, *columns.type.parameters))
    node = body.dag.function((number, *columns.node.attribute), columns.node.inputs, type_)
    return FunctionValue(type_, node)


def _same_domain(a: FunctionValue, b: FunctionValue) -> bool:
    """True if two functions have equal domains, as far as the domains are known."""
    pairs = zip(a.domain_with_borders, b.domain_with_borders, strict=True)
    return all(UNKNOWN in pair or str(pair[0]) == str(pair[1]) for pair in pairs)


def _flatten(tree: ast.ArrayLiteral) -> tuple[tuple[int, ...], list[ast.AstNode]]:
    """The shape of a literal, and its elements in row-major order; raises CS0320 for rows of different lengths."""
    shape: list[int] = []
    level: list[ast.AstNode] = [tree]
    while level and isinstance(level[0], ast.ArrayLiteral):
        lengths: dict[int, ast.AstNode] = {}
        for row in level:
            length = len(row.elements) if isinstance(row, ast.ArrayLiteral) else -1  # -1: a number among rows
            lengths.setdefault(length, row)
        if len(lengths) > 1 or len(shape) == MAX_RANK:
            row = list(lengths.values())[-1]
            message = "the rows of an array have equal lengths, and at most four dimensions"
            raise ProgramError("CS0320", row.span, message)
        shape.append(next(iter(lengths)))
        level = [element for row in level if isinstance(row, ast.ArrayLiteral) for element in row.elements]
    nested = next((leaf for leaf in level if isinstance(leaf, ast.ArrayLiteral)), None)
    if nested is not None or not level:
        message = "an array needs an element" if not level else "the rows of an array have equal lengths"
        hint = "" if level else "`var a(i : 0..0) = 0;` is empty"
        raise ProgramError("CS0320", (nested or tree).span, message, hint)
    return tuple(shape), level


def _literal_array(body: Body, span: Span, shape: tuple[int, ...], values: list[DataValue]) -> FunctionValue:
    """The array of values of one type, evaluated on the host; raises CS0320 for values that are not known yet."""
    program, element = body.program, values[0].type
    type_ = ty.FunctionType(element, (ty.INT,) * len(shape), is_array=True)
    numbers: list[list[float]] = []
    for value in values:
        known = program.host.cheap_numbers(value)
        if known is None and program.host.abstract_depth:
            return program.abstract_function("array", type_)
        if known is None:
            names = value.variable_names()
            reason = f"depends on `{names}`" if names else "is computed from arrays"
            message = f"the elements of an array are known before arrays are computed, but one {reason}"
            raise ProgramError("CS0320", span, message, "`var a(i : 0..n) = ...` computes elements")
        numbers.append(known)
    pairs = zip(zip(*numbers, strict=True), ty.component_types(element), strict=True)
    parts: list[np.ndarray] = [np.array(column, ty.DTYPES[scalar]).reshape(shape) for column, scalar in pairs]
    return evaluated_array(program.dag, parts, tuple(Range(0, n) for n in shape), type_, "array literal")


# Primitives


def lower_primitive(body: Body, name: str, tree: ast.Call) -> FunctionValue:
    """The array of a call of the primitive `name`; raises CS0319."""
    wanted = PRIMITIVES[name].count(",") + 1  # arguments, as its usage has them: "histogram(keys, bins)"
    if len(tree.arguments) != wanted or any(isinstance(a, ast.Blank) for a in tree.arguments):
        raise ProgramError("CS0319", tree.span, f"{name} takes {wanted} arguments", f"`{PRIMITIVES[name]}`")
    functions = [_function(body, name, t) for t in tree.arguments[: 1 if name == "histogram" else 2]]
    first, span = functions[0], tree.arguments[0].span
    domain, scalar = first.domain, _scalar(first, name, tree.arguments[0])
    if name == "histogram" or name in SCATTERS.values():
        if scalar != "int":
            raise ProgramError("CS0319", span, f"the keys of {name} are int, not {scalar}", "`(int) keys`")
        result = _scalar(functions[1], name, tree.arguments[1]) if name != "histogram" else "int"
        count = host_int(body, tree.arguments[-1])
        ranges: tuple[Range | None, ...] = (None if count is None else Range(0, max(0, count)),)
        if len({size for size in map(_sizes, functions) if size is not None}) > 1:
            where = tree.arguments[1].span
            sizes = " and ".join(" x ".join(map(str, f.domain)) for f in functions)
            raise ProgramError("CS0319", where, f"{name} needs a value for each key, but the domains are {sizes}")
        called = "scatter_add" if name == "histogram" else name
        return _primitive_array(body, name, called, ranges, result, functions)
    if name != "scan" and len(domain) != 1:
        hint = "rows: `sort_rows(m)`; columns: the rows of the transpose, `var t(j, i) = m(i, j);`"
        raise ProgramError("CS0319", span, f"{name} takes a function of one dimension, not {first.type}", hint)
    ranges = tuple(d if isinstance(d, Range) else None for d in domain)
    return _primitive_array(body, name, name, ranges, "int" if name == "argsort" else scalar, functions)


def _function(body: Body, name: str, tree: ast.AstNode) -> FunctionValue:
    """An argument: a function of int indices with a finite domain and without free variables; raises CS0319."""
    value = lower_resolved_expression(body, tree)
    excerpt = tree.span.excerpt
    if not isinstance(value, FunctionValue):
        hint = f"`var f(i) = ...; {name}(f)`"
        raise ProgramError("CS0319", tree.span, f"{name} takes whole functions, but {excerpt} is {value.type}", hint)
    if not value.type.takes_indices:
        raise ProgramError("CS0319", tree.span, f"{name} takes functions of int indices, not {value.type}")
    scalar = value.type.result.name if isinstance(value.type.result, ty.Scalar) else ""
    if scalar in ty.PROMOTED:  # half becomes float, byte becomes int
        value = promote(body, [value], lambda v: body.builder.promoted(v[0]), tree.span)
        assert isinstance(value, FunctionValue), "it was one"
    if value.node.free_variables:
        names = ", ".join(sorted(v.name for v in value.node.free_variables))
        message = f"{excerpt} depends on `{names}`, but {name} computes one array for all of its indices"
        hint = "a scan of more dimensions goes along the last one" if name == "scan" else "rows: `sort_rows(m)`"
        raise ProgramError("CS0319", tree.span, message, hint)
    if not body.program.host.abstract_depth and not all(isinstance(d, Range) for d in value.domain_with_borders):
        raise ProgramError("CS0319", tree.span, f"the domain of {excerpt} is not finite", "restrict it: `i : 0..n`")
    return value


def _scalar(value: FunctionValue, name: str, tree: ast.AstNode) -> str:
    """The scalar type of a function's elements; raises CS0319 for other elements."""
    result = value.type.result
    if not isinstance(result, ty.Scalar) or result.name not in SUMMED:
        hint = f"call {name} once for each component, as for `.x`" if isinstance(result, ty.Vector) else ""
        raise ProgramError("CS0319", tree.span, f"{name} takes elements of {', '.join(SUMMED)}, not {result}", hint)
    return result.name


def _sizes(value: FunctionValue) -> tuple[int, ...] | None:
    """The extents of a domain; None while they are unknown."""
    sizes = tuple(d.size for d in value.domain if isinstance(d, Range))
    return sizes if len(sizes) == len(value.domain) else None


def _primitive_array(
    body: Body, called: str, name: str, ranges: tuple[Range | None, ...], scalar: str, functions: list[FunctionValue]
) -> FunctionValue:
    """The array of a primitive; an abstract function while a function is checked with abstract arguments."""
    program = body.program
    known = [r for r in ranges if isinstance(r, Range)]
    if program.host.abstract_depth or len(known) != len(ranges):
        type_ = ty.FunctionType(ty.Scalar(scalar), (ty.INT,) * len(ranges), is_array=True)
        return program.abstract_function(called, type_)
    node = primitive(program.dag, name, tuple(known), scalar, *(f.node for f in functions))
    return FunctionValue(node.type, node, tuple(known))
