"""Array literals, `[1, 2, 3]` and `[[1, 0], [0, 1]]`: numbers and records that are known while a program is built."""

from __future__ import annotations

import numpy as np

from renderer.cdollar.checker.arrays import evaluated_array
from renderer.cdollar.checker.primitives import Lowering
from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import UNKNOWN, BoundVariable, Range
from renderer.cdollar.ir.types import DTYPES, INT, Data, FunctionType, Type, component_types, widening

MAX_RANK = 4


def lower_array_literal(lowering: Lowering, tree: ast.ArrayLiteral, expected: Type | None) -> FunctionValue:
    """The array, from index 0 on; of the expected type if one is known, else of the widest of its elements' types."""
    shape, leaves = _flatten(tree)
    values = [lowering.lower_operand(leaf) for leaf in leaves]
    if all(isinstance(v, FunctionValue) for v in values) and len(shape) == 1:
        return _rows(lowering, tree, [v for v in values if isinstance(v, FunctionValue)])
    data = [v for v in values if isinstance(v, DataValue)]
    for value, leaf in zip(values, leaves, strict=True):
        if not isinstance(value, DataValue):
            message = f"an element of an array is a number or a record, but {leaf.span.excerpt} is {value.type}"
            raise ProgramError("CS0320", leaf.span, message, "nest brackets for more dimensions: `[[1, 2], [3, 4]]`")
    wanted = expected.result if isinstance(expected, FunctionType) else None
    element = wanted or next((t.type for t in data if all(widening(o.type, t.type) is not None for o in data)), None)
    if element is None:
        types = ", ".join(dict.fromkeys(str(v.type) for v in data))
        raise ProgramError(
            "CS0320", tree.span, f"the elements of this array have the types {types}", "cast them to one"
        )
    return _array(
        lowering, tree, shape, [lowering.convert(v, element, t.span) for v, t in zip(data, leaves, strict=True)]
    )


def _rows(lowering: Lowering, tree: ast.ArrayLiteral, rows: list[FunctionValue]) -> FunctionValue:
    """`[a, b]`: functions over the same domain as rows of one more dimension, the first; raises CS0320."""
    first = rows[0]
    for row, leaf in zip(rows, tree.elements, strict=True):
        if row.type.as_function_type != first.type.as_function_type or not _same_domain(row, first):
            domains = " and ".join(" x ".join(map(str, f.domain_with_borders)) for f in (first, row))
            message = f"the rows of an array have one type and domain, but these are {first.type} over {domains}"
            if row.type.as_function_type != first.type.as_function_type:
                message = f"the rows of an array have one type, but {first.type} and {row.type} are given"
            raise ProgramError("CS0320", leaf.span, message)
    builder = lowering.program.builder
    number = BoundVariable("_", "int", Range(0, len(rows)))
    index = DataValue(INT, (builder.dag.bound_variable(number),))

    def chosen(values: list[DataValue]) -> DataValue:
        """The row of this number."""
        result = values[-1]
        for k in range(len(values) - 2, -1, -1):
            is_here = builder.binary("==", index, builder.constant(k, "int"))
            assert is_here is not None, "int is compared"
            selected = builder.select(is_here, values[k], result)
            assert selected is not None, "rows have one type"
            result = selected
        return result

    columns = lowering.promote(list(rows), chosen, tree.span)
    assert isinstance(columns, FunctionValue) and isinstance(columns.node.attribute, tuple), "rows are functions"
    type_ = FunctionType(columns.type.result, (INT, *columns.type.parameters))
    node = builder.dag.function((number, *columns.node.attribute), columns.node.inputs, type_)
    return FunctionValue(type_, node)


def _same_domain(a: FunctionValue, b: FunctionValue) -> bool:
    """Whether two functions have one domain, as far as it is known."""
    pairs = zip(a.domain_with_borders, b.domain_with_borders, strict=True)
    return all(UNKNOWN in pair or str(pair[0]) == str(pair[1]) for pair in pairs)


def _flatten(tree: ast.ArrayLiteral) -> tuple[tuple[int, ...], list[ast.AstNode]]:
    """The shape of a literal, and its elements in row-major order; raises CS0320 for rows of different lengths."""
    shape: list[int] = []
    level: list[ast.AstNode] = [tree]
    while level and isinstance(level[0], ast.ArrayLiteral):
        lengths: dict[int, ast.AstNode] = {}
        for row in level:
            length = len(row.elements) if isinstance(row, ast.ArrayLiteral) else -1
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
        raise ProgramError(
            "CS0320", (nested or tree).span, message, "`var a(i : 0..0) = 0;` is empty" if not level else ""
        )
    return tuple(shape), level


def _array(lowering: Lowering, tree: ast.ArrayLiteral, shape: tuple[int, ...], values: list) -> FunctionValue:
    """The array of values of one type."""
    program, element = lowering.program, values[0].type
    assert isinstance(element, Data), "elements are data"
    type_ = FunctionType(element, (INT,) * len(shape), True)
    numbers = [program.host.cheap_numbers(value) for value in values]
    if program.host.abstract_depth and None in numbers:
        abstract = program.abstract_value("array", type_)
        assert isinstance(abstract, FunctionValue), "its type is functional"
        return abstract
    for value, known in zip(values, numbers, strict=True):
        if known is None:
            names = value.variable_names()
            reason = f"depends on `{names}`" if names else "is computed from arrays"
            message = f"the elements of an array are known before arrays are computed, but one {reason}"
            raise ProgramError("CS0320", tree.span, message, "`var a(i : 0..n) = ...` computes elements")
    columns = zip(*numbers, strict=True)  # type: ignore[arg-type]  # none is None
    parts: list[np.ndarray] = [
        np.array(column, DTYPES[scalar]).reshape(shape)
        for column, scalar in zip(columns, component_types(element), strict=True)
    ]
    return evaluated_array(program.dag, parts, tuple(Range(0, n) for n in shape), type_, "array literal")
