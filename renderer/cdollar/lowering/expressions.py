"""Lowers the expressions of a body to DAG nodes, and checks their types.

A function takes the Body and a node of the syntax tree, and returns its Value: a type with DAG nodes, or a function.
EXPRESSION_RULES and TYPED_RULES have a function for each kind of expression; the latter take the expected type. A
ProgramError has the code CS... of the mistake and the span of the expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from renderer.cdollar.checker.arrays import BlockArray
from renderer.cdollar.checker.domains import combine
from renderer.cdollar.checker.node_builder import CONSTANTS, PRIMITIVES
from renderer.cdollar.checker.program import Body, lower
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.tables import overloads_for_values
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, OverloadSet, TupleValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import FollowingError, ProgramError, Span
from renderer.cdollar.frontend.hints import MEMBERS, SIGNS
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import Range
from renderer.cdollar.lowering import calls, conversions, domains, reductions
from renderer.cdollar.lowering.arrays import lower_array_literal, lower_primitive
from renderer.cdollar.lowering.functions import promote, with_border_mode
from renderer.cdollar.lowering.gradients import GRADIENTS, lower_gradient

# Operators


def lower_unary(body: Body, tree: ast.Unary) -> Value:
    """A unary operator, or a reduction by `+` or `*`, as in `+ (a(i) * b(i))`."""
    operand, name = tree.operand, tree.operator
    if name in ("+", "*"):
        union = reductions.union_restriction(body, tree)
        if union is not None:  # this function once for each box
            return reductions.reduce_boxes(body, name, *union, tree.span, lambda: lower_unary(body, tree))
        variables, value = reductions.lower_reduction_body(body, tree, operand)
        if variables:
            return reductions.reduce_by_operator(body, name, variables, value, tree.span)
        reductions.warn_of_inner_reduction(body, tree)
        return apply_unary(body, tree, value)
    if name == "-" and isinstance(operand, ast.Literal) and (operand.kind, operand.value) == ("int", 2**31):
        return body.builder.constant(-(2**31), "int")
    return promote(body, [domains.lower_operand(body, operand)], lambda v: apply_unary(body, tree, v[0]), tree.span)


def apply_unary(body: Body, tree: ast.Unary, value: DataValue) -> DataValue:
    """A unary operator on data; raises CS0308 or CS0403."""
    result = body.builder.unary(tree.operator, value) if tree.operator != "*" else None
    result = result or call_user_operator(body, tree, [value])
    if result is not None:
        return result
    if tree.operator == "*":
        message = "`*` before a value reduces by products, but nothing here is reduced"
        # `x ** 2` is a product with `* 2`
        is_power = tree.span.source.text[tree.span.start - 1 : tree.span.start] == "*"
        raise ProgramError("CS0308", tree.span, message, SIGNS["**"] if is_power else "there are no pointers")
    message = f"`{tree.operator}` is not defined for {value.type}"
    raise ProgramError("CS0403", tree.span, message, operator_hint(tree.operator, value.type))


def lower_binary(body: Body, tree: ast.Binary) -> Value:
    """A chain of binary operators, from left to right."""
    # A chain a + b + c is a tree that is deep on its left side.
    chain: list[ast.Binary] = []
    left: ast.AstNode = tree
    while isinstance(left, ast.Binary):
        chain.append(left)
        left = left.left
    first = lower(body, left)
    if isinstance(first, DomainValue):
        return combine_domains(body, first, chain)
    value = conversions.resolve(body, first, left.span)
    for link in reversed(chain):
        with body.guarded(link.operator in ("&&", "||")):
            operands = [value, domains.lower_operand(body, link.right)]
        value = promote(body, operands, partial(apply_binary, body, link), link.span)
    return value


def combine_domains(body: Body, value: DomainValue, chain: list[ast.Binary]) -> DomainValue:
    """`a | b`, `a & b`, `a * b` of domains, from left to right; a function on the right stands for its domain."""
    for link in reversed(chain):
        other = lower(body, link.right)
        if isinstance(other, FunctionValue):
            other = DomainValue(other.domain)
        if not isinstance(other, DomainValue):
            shown = conversions.type_text(other)
            message = f"`{link.operator}` is not defined for a {value.type} and {shown}"
            raise ProgramError("CS0323", link.span, message, "a range is `0..n`, in parentheses: `(0..3) | (5..9)`")
        value = combine(link.operator, value, other, link.span)
    return value


def apply_binary(body: Body, tree: ast.Binary, operands: list[DataValue]) -> DataValue:
    """A binary operator on data; raises CS0403, or CS0404 for a division by the integer 0."""
    a, b = operands
    name, scalars = tree.operator, {ty.scalar_type_of(a.type), ty.scalar_type_of(b.type)}
    if name in ("/", "%") and b.is_literal and scalars <= set(ty.INTEGERS):
        if any(node.attribute.number == 0 for node in b.nodes):
            raise ProgramError("CS0404", tree.span, "this divides an integer by zero")
    result = body.builder.binary(name, a, b)
    if result is None and a.type == b.type and isinstance(a.type, ty.Record) and name in ("==", "!="):
        pairs = zip(a.nodes, b.nodes, strict=True)
        nodes = tuple(body.builder.apply(name, x.type, x, y) for x, y in pairs)
        return body.builder.chain("&&" if name == "==" else "||", nodes)
    result = result or call_user_operator(body, tree, [a, b])
    if result is None:
        hint = operator_hint(name, a.type, b.type)
        if scalars == {"int", "uint"}:
            hint = "cast one of them: `(int) x` or `(uint) x`"
        elif ty.BOOL in (a.type, b.type):
            hint = conversions.BOOL_HINT
        raise ProgramError("CS0403", tree.span, f"`{name}` is not defined for {a.type} and {b.type}", hint)
    return result


def call_user_operator(body: Body, tree: ast.Unary | ast.Binary, values: list[DataValue]) -> DataValue | None:
    """A call of the program's operator for the values; None if there is none."""
    chosen = conversions.resolve_overload(body, body.program.functions.get("operator" + tree.operator), values)
    if chosen is None:
        return None
    result = calls.call_user(body, chosen, values, tree)
    assert isinstance(result, DataValue)
    return result


def lower_conditional(body: Body, tree: ast.Conditional) -> Value:
    """`condition ? if_true : if_false`; a known condition chooses one of two functions of equal type."""
    condition = domains.lower_operand(body, tree.condition)
    if isinstance(condition, DataValue):
        check_condition(condition, tree.condition.span)
    with body.guarded():
        if_true, if_false = lower(body, tree.if_true), lower(body, tree.if_false)
    if isinstance(condition, DataValue) and condition.is_closed:
        if isinstance(if_true, FunctionValue) and isinstance(if_false, FunctionValue):
            known = body.program.host.node_number(condition.node)
            if known is not None and if_true.type.as_function_type == if_false.type.as_function_type:
                return if_true if known else if_false
    return checked_select(body, tree, condition, if_true, if_false)


def checked_select(
    body: Body, tree: ast.Conditional | ast.If, condition: Value, if_true: Value, if_false: Value
) -> DataValue | FunctionValue | TupleValue:
    """`condition ? if_true : if_false`, promoted, of tuples value by value; raises CS0405 or CS0406 for other types."""
    if isinstance(if_true, TupleValue) and isinstance(if_false, TupleValue):
        if not ty.are_alike(if_true.type, if_false.type):
            raise ProgramError("CS0406", tree.span, f"the two results are {if_true.type} and {if_false.type}")
        pairs = zip(if_true.fields, if_false.fields, strict=True)
        return TupleValue(if_true.type, tuple(checked_select(body, tree, condition, a, b) for a, b in pairs))
    operands = [conversions.resolve(body, value, tree.span) for value in (condition, if_true, if_false)]

    def select(values: list[DataValue]) -> DataValue:
        check_condition(values[0], tree.condition.span)
        result = body.builder.select(*values)
        if result is None:
            message = f"the two results are {values[1].type} and {values[2].type}"
            raise ProgramError("CS0406", tree.span, message, "cast one to the type of the other")
        return result

    return promote(body, operands, select, tree.span)


def check_condition(value: DataValue | FunctionValue, span: Span, hint: str = "compare it: `x != 0`") -> DataValue:
    """The condition; raises CS0405 unless it is one bool."""
    if not isinstance(value, DataValue) or value.type != ty.BOOL:
        raise ProgramError("CS0405", span, f"a condition is bool, but this is {value.type}", hint)
    return value


def operator_hint(operator: str, *types: ty.Type) -> str:
    """The hint for types that an operator does not take."""
    if ty.BOOL in types:
        return conversions.BOOL_HINT
    record = next((t for t in types if isinstance(t, ty.Record)), None)
    if record is not None:
        parameters = ", ".join(f"{t} {name}" for t, name in zip(types, "ab", strict=False))
        return f"define it: `{record} operator {operator}({parameters}) {{ ... }}`"
    return "`^` is the exclusive or of integers; a power is `pow(x, 2)`" if operator == "^" else ""


# Expressions


SWIZZLES = ("xyzw", "rgba")  # the letters of a vector's components, as in GLSL


def lower_member_access(body: Body, tree: ast.MemberAccess) -> Value:
    """`v.x`, `f.clamp`, `Math.PI`."""
    if isinstance(tree.subject, ast.Name) and tree.subject.name == "Math" and not domains.is_known(body, "Math"):
        name = {"PI": "pi", "E": "e"}.get(tree.name, tree.name.lower())
        return lower(body, ast.Name(tree.name_span, name))
    return lower_member(body, lower(body, tree.subject), tree)


def lower_member(body: Body, value: Value, tree: ast.MemberAccess) -> Value:
    """A member of a value: a field, components of a vector, a border mode, an end of a domain; raises CS0206."""
    if isinstance(value, DomainValue):
        return domains.domain_member(body, value, tree)
    if isinstance(value, TupleValue):
        if tree.name in value.items:
            return value.items[tree.name]
        message = f"{value.type} has no member `{tree.name}`"
        raise ProgramError("CS0206", tree.name_span, message, f"members: {', '.join(value.items)}")
    subject = conversions.resolve(body, value, tree.subject.span)
    if isinstance(subject, FunctionValue):
        if tree.name in ast.BORDER_MODES:
            return with_border_mode(subject, tree)
        is_field = any(name == tree.name for name, _, _ in ty.fields(subject.type.result))
        if tree.name in ("Length", "length", "size") and not is_field:
            return domains.domain_number(body, DomainValue(subject.domain_with_borders), "size", tree.span)
        if tree.name in ("GetLength", "domain"):
            hint = "the extents are `size(f, 0)`, `domain(f)`"
            raise ProgramError("CS0206", tree.name_span, f"no member `{tree.name}`", hint)
    return promote(body, [subject], lambda v: member(v[0], tree, subject.type), tree.span)


def lower_with_field(body: Body, tree: ast.WithField) -> Value:
    """A record or vector, or a function of them, with a new value of one field."""
    old, value = lower(body, tree.subject), lower(body, tree.value)
    if isinstance(old, TupleValue) and tree.name in old.items:
        type_ = dict(old.type.fields)[tree.name]
        new = old.items | {tree.name: conversions.convert(body, value, type_, tree.value.span)}
        return TupleValue(old.type, tuple(new.values()))
    operands = [conversions.resolve(body, v, t.span) for v, t in ((old, tree.subject), (value, tree.value))]
    return promote(body, operands, lambda v: with_field(body, tree, *v), tree.span)


def with_field(body: Body, tree: ast.WithField, subject: DataValue, value: DataValue) -> DataValue:
    """The record or vector `subject` with `value` in the field that `tree` names; raises CS0206."""
    for name, type_, first in ty.fields(subject.type):
        if name == tree.name:
            new = conversions.convert_data(body, value, type_, tree.value.span).nodes
            return DataValue(subject.type, (*subject.nodes[:first], *new, *subject.nodes[first + len(new) :]))
    known = ", ".join(name for name, _, _ in ty.fields(subject.type)) or "none"
    message = f"{subject.type} has no field `{tree.name}` that can be assigned"
    raise ProgramError("CS0206", tree.span, message, f"fields: {known}")


def member(value: DataValue, tree: ast.MemberAccess, type_of_all: ty.Type) -> DataValue:
    """A field of a record, or components of a vector by name: `v.zyx`; `type_of_all` is for the message."""
    names = [name for name, _, _ in ty.fields(value.type)]
    if tree.name in names:
        return value.fields[names.index(tree.name)]
    if isinstance(value.type, ty.Vector):
        for letters in SWIZZLES:
            indices = [letters.find(c) for c in tree.name]
            if 1 <= len(indices) <= 4 and all(0 <= k < value.type.size for k in indices):
                scalar, size = value.type.scalar_type, len(indices)
                type_ = ty.Vector(scalar, size) if size > 1 else ty.Scalar(scalar)
                return DataValue(type_, tuple(value.nodes[k] for k in indices))
    hint = f"members: {', '.join(names)}" if names else MEMBERS.get(tree.name, "numbers have no members")
    raise ProgramError("CS0206", tree.name_span, f"{type_of_all} has no member `{tree.name}`", hint)


def lower_tuple(body: Body, tree: ast.TupleExpression, expected: ty.Type | None) -> Value:
    """`(a, b)`; the values take on the types that are expected."""
    types: list[ty.Type | None] = [None] * len(tree.elements)
    if isinstance(expected, ty.Record | ty.Tuple) and len(expected.fields) == len(types):
        types = [type_ for _, type_ in expected.fields]
    return conversions.make_tuple([("", value) for value in lower_elements(body, tree.elements, types)])


def lower_elements(body: Body, trees: list[ast.AstNode], types: Sequence[ty.Type | None]) -> list[Value]:
    """The values of a tuple, converted to the types that are known."""
    values = []
    for tree, type_ in zip(trees, types, strict=True):
        value = lower(body, tree, type_)
        if type_ is not None:
            value = conversions.convert(body, value, type_, tree.span)
        elif isinstance(value, OverloadSet):
            value = conversions.resolve(body, value, tree.span)
        values.append(body.builder.with_default_type(value) if isinstance(value, DataValue) else value)
    return values


def lower_tuple_element(body: Body, tree: ast.TupleElement) -> Value:
    """The value at a position of a tuple, class or vector; raises CS0402 if it has another number of values."""
    value = lower(body, tree.subject)
    fields: Sequence[Value] = value.fields if isinstance(value, TupleValue | DataValue) else ()
    if len(fields) != tree.count:
        message = f"{tree.subject.span.excerpt} is {conversions.type_text(value)}, but {tree.count} names are given"
        raise ProgramError("CS0402", tree.subject.span, message, f"it has {len(fields) or 'no'} values to name")
    return fields[tree.position]


def call_builtin(body: Body, name: str, tree: ast.Call) -> Value | None:
    """A call of a function of DOMAIN_FUNCTIONS, `file`, `grad` or a primitive; None for other names."""
    if name in PRIMITIVES:
        body.require_host()  # NotDeviceCode inside of device functions, which cannot build functions
        return lower_primitive(body, name, tree)
    if name in GRADIENTS:
        return lower_gradient(body, name, tree)
    if name == "file":
        file = tree.arguments[0] if len(tree.arguments) == 1 else None
        if not isinstance(file, ast.Literal) or file.kind != "string":
            message = "file takes the name of a .npy file as a string"
            raise ProgramError("CS0501", tree.span, message, 'file("big.npy")')
        return body.program.open_file(str(file.value), file.span)
    return domains.call_domain_function(body, name, tree) if name in domains.DOMAIN_FUNCTIONS else None


def lower_call(body: Body, tree: ast.Call) -> Value:
    """`f(i)`: a call by name, a call of a method, an array or function value at indices, or a domain's dimension."""
    if tree.restrictions and not domains.is_reduction_call(body, tree):
        hint = "`sum(a(i), i : 0..n)`, or a separate statement: `i : 0..n;`"
        raise ProgramError("CS0310", tree.restrictions[0].span, "a restriction belongs to a reduction", hint)
    callee = tree.callee
    local = body.scope.find(callee.name) if isinstance(callee, ast.Name) else None
    if local is not None and local.arrays:  # a local array of device code
        return calls.read_element(body, local, tree.arguments, tree.span)
    # GetLength(k) is C#'s name of the extent of dimension k
    if isinstance(callee, ast.MemberAccess) and callee.name in ("GetLength", *body.program.functions.method_names):
        subject = lower(body, callee.subject)
        if not isinstance(subject, TupleValue):
            subject = conversions.resolve(body, subject, callee.subject.span)
        if callee.name == "GetLength" and len(tree.arguments) == 1 and isinstance(subject, FunctionValue):
            extent = domains.selected_dimension(body, DomainValue(subject.domain_with_borders), tree.arguments[0])
            return domains.domain_number(body, extent, "size", tree.span)
        called = call_method(body, subject, callee, tree)
        if called is not None:
            return called
        function: Value = lower_member(body, subject, callee)
    else:
        function = lower(body, callee)
    if isinstance(function, OverloadSet):
        return call_by_name(body, function.name, tree)
    if isinstance(function, DomainValue):
        return domains.domain_index(body, function, tree)
    if not isinstance(function, FunctionValue):
        raise ProgramError("CS0408", callee.span, f"{callee.span.excerpt} is {function.type}, not a function")
    return calls.apply(body, function, calls.lower_indices(body, function, tree), tree)


def call_method(
    body: Body, subject: DataValue | FunctionValue | TupleValue, callee: ast.MemberAccess, tree: ast.Call
) -> Value | None:
    """A method of the class of a value, or of each element of a function; None if there is none."""
    data = subject.type.result if isinstance(subject, FunctionValue) else subject.type
    name = f"{data}.{callee.name}"
    if name not in body.program.functions:
        return None
    values: list[Any] = [subject, *(calls.lower_argument(body, argument) for argument in tree.arguments)]
    overloads = overloads_for_values(body.program.functions, name, values)
    call = ast.Call(tree.span, callee, [callee.subject, *tree.arguments])
    return calls.call_overloaded(body, name, overloads, values, call)


def call_by_name(body: Body, name: str, tree: ast.Call) -> Value:
    """A call of the program's functions of this name; of the built-in function if there are none."""
    functions = body.program.functions
    overloads = functions.get(name)
    if name == "fold" and not overloads:
        return reductions.lower_fold(body, tree)
    if domains.is_reduction_call(body, tree) and not isinstance(tree.arguments[0], ast.Blank):
        return reductions.reduce_call(body, name, overloads, tree)
    if not overloads and name in SCANS and len(tree.arguments) > 1:  # `scan(f, a)` of the prelude, not `scan(a)`
        require_associative(body, name, tree.arguments[0])
    elif not overloads:
        result = call_builtin(body, name, tree)
        if result is not None:
            return result
    values = calls.lower_arguments(body, name, overloads, tree)
    return calls.call_overloaded(body, name, overloads_for_values(functions, name, values), values, tree)


# Functions of the prelude that may group elements in any order.
SCANS = ("scan", "exclusive_scan", "segmented_scan", "segmented_reduce")


def require_associative(body: Body, name: str, function: ast.AstNode) -> None:
    """Raises CS0319 unless a scan is by min, max or a function of the program that is marked [Associative]."""
    if body.function is not None and body.function.name in SCANS:
        return  # the call of this function was checked
    overloads = body.program.functions.get(function.name) if isinstance(function, ast.Name) else []
    is_marked = any("Associative" in f.declaration.attributes for f in overloads)
    if not is_marked and not (isinstance(function, ast.Name) and not overloads and function.name in ("min", "max")):
        message = f"{name} combines elements in any grouping, and {function.span.excerpt} is not marked [Associative]"
        hint = "`[Associative] float f(float a, float b) => ...`; `fold(step, start, a(i))` goes in order"
        raise ProgramError("CS0319", function.span, message, hint)


def lower_literal(body: Body, tree: ast.Literal) -> Value:
    """A number or a truth value; raises CS0203 for a string, CS0114 for an int that is too large."""
    if isinstance(tree.value, str):
        hint = 'a string names a file: file("big.npy")'
        raise ProgramError("CS0203", tree.span, "a string has no meaning here", hint)
    if tree.kind == "int" and tree.value >= 2**31:
        message = f"{tree.value} is too large for int"
        raise ProgramError("CS0114", tree.span, message, "write it as uint: 4000000000u")
    untyped = tree.kind == "float_literal"  # without a suffix: float, or double where the context has doubles
    return body.builder.constant(tree.value, "float" if untyped else tree.kind, untyped)


def lower_name(body: Body, tree: ast.Name) -> Value:
    """The value of a variable, an overload set, or a constant; raises CS0202, CS0204 or CS0216."""
    variable = domains.find_variable(body, tree.name)
    if variable is not None:
        if variable.arrays:
            body.require_host()
        if variable.value is None:
            kind = FollowingError if variable.is_faulty else ProgramError
            raise kind("CS0204", tree.span, f"`{tree.name}` is used before it has a value")
        if not isinstance(variable.value, DataValue):
            body.require_host()
        return variable.value
    if domains.is_function(body, tree.name):
        return OverloadSet(tree.name)
    if tree.name in CONSTANTS:
        return body.builder.constant(CONSTANTS[tree.name], "float", untyped=True)
    return domains.fail_unknown(body, tree)


def fail_misplaced(body: Body, tree: ast.Blank | ast.Slice) -> Value:
    """Raises CS0205, as only arguments may be missing, or CS0322, as only brackets hold slices."""
    if isinstance(tree, ast.Blank):
        raise ProgramError("CS0205", tree.span, "an argument is missing here")
    raise ProgramError("CS0322", tree.span, "a slice has a meaning only in the brackets of an array")


def lower_let(body: Body, tree: ast.LetIn) -> Value:
    """`let x = value in body`: the value is evaluated once."""
    value = conversions.let_bind(body, domains.lower_operand(body, tree.value), tree.value.span)
    with body.block() as scope:
        scope.names[tree.name] = Variable(value, None, "shared by `let`")
        return lower(body, tree.body)


def lower_lambda(body: Body, tree: ast.Lambda, expected: ty.Type | None) -> Value:
    """`x => body`, of the expected type if one is known; raises CS0402."""
    if isinstance(expected, ty.FunctionType) and len(expected.parameters) != len(tree.parameters):
        message = f"{expected} takes {len(expected.parameters)} parameters, this function {len(tree.parameters)}"
        raise ProgramError("CS0402", tree.span, message)
    return domains.lower_bound_function(body, tree.parameters, tree.body, expected)


def lower_cast(body: Body, tree: ast.Cast) -> Value:
    """`(type) operand`."""
    target = body.program.types.resolve(tree.type)
    value = lower(body, tree.operand, target)
    if isinstance(target, ty.FunctionType):
        return conversions.convert(body, value, target, tree.operand.span)
    assert isinstance(target, ty.Data)
    operand = conversions.resolve(body, value, tree.operand.span)
    return promote(body, [operand], lambda v: conversions.cast(body, v[0], target, tree.span), tree.span)


def lower_constructor_call(body: Body, tree: ast.ConstructorCall) -> Value:
    """`float3(1, 2, 3)`, or the values of a class; raises CS0203, CS0205 or CS0402."""
    target = body.program.types.resolve(tree.type)
    if isinstance(tree.type, ast.NamedType) and tree.type.name in body.program.types.function_classes:
        return make_function_object(body, body.program.types.function_classes[tree.type.name], tree)
    if isinstance(target, ty.Tuple):
        return construct_tuple(body, target, tree)
    values = [domains.lower_operand(body, argument) for argument in tree.arguments]
    if isinstance(target, ty.FunctionType):
        raise ProgramError("CS0203", tree.span, f"{target} is made by a cast", f"`({target}) f`")
    if not values:
        raise ProgramError("CS0205", tree.span, f"{target}(...) needs arguments")
    assert isinstance(target, ty.Data)
    return promote(body, values, lambda v: conversions.construct(body, target, v, tree), tree.span)


def construct_tuple(body: Body, target: ty.Tuple, tree: ast.ConstructorCall) -> TupleValue:
    """`R(x, y)` of a class with fields that are functions; raises CS0402."""
    body.require_host()
    conversions.check_count(str(target), [f"{type_} {name}" for name, type_ in target.fields], tree)
    return TupleValue(target, tuple(lower_elements(body, tree.arguments, [type_ for _, type_ in target.fields])))


def make_function_object(body: Body, item: ast.ClassDeclaration, tree: ast.ConstructorCall) -> FunctionValue:
    """`Ramp(2)`: the function of a class that is derived from a functional type, with these fields; raises CS0402."""
    body.require_host()
    conversions.check_count(item.name, [f"{type_.span.excerpt} {name}" for name, type_, _ in item.fields], tree)
    scope, types = Scope(), body.program.types
    for (name, written, _), argument in zip(item.fields, tree.arguments, strict=True):
        type_ = types.resolve(written)
        value = conversions.convert(body, lower(body, argument, type_), type_, argument.span)
        scope.names[name] = Variable(value, None, "a field")
    base = types.types[item.name]
    assert isinstance(base, ty.FunctionType) and item.evaluation is not None, "TypeTable.declare has seen to it"
    evaluation, values = item.evaluation, tuple(variable.value for variable in scope.names.values())

    def lower_evaluation() -> Value:
        apart = Body(body.program, scope)  # the fields are its only variables
        function = domains.lower_bound_function(apart, evaluation.parameters, evaluation.body, base)
        return conversions.convert(body, function, base, evaluation.span)

    converted = body.program.lower_once((item, values, body.program.host.abstract_depth > 0), lower_evaluation)
    assert isinstance(converted, FunctionValue), "the base is a functional type"
    is_known = not body.program.host.abstract_depth and not converted.node.free_variables
    return with_block_read(body, item, converted, scope) if item.block_read is not None and is_known else converted


def with_block_read(body: Body, item: ast.ClassDeclaration, function: FunctionValue, fields: Scope) -> FunctionValue:
    """A function of a class with a method `read`, which gives its elements a block at a time; raises CS0115.

    The targets ask for the region that a program accesses, when they reach it.
    """
    program, method, range_ = body.program, item.block_read, function.domain[0]
    assert method is not None, "the caller has seen to it"
    if len(function.domain) != 1 or not isinstance(range_, Range):
        message = f"`read` needs one finite dimension, but {item.name} has {' x '.join(map(str, function.domain))}"
        raise ProgramError("CS0115", method.name_span, message, "`operator ()(int i : 0..n) => ...`")
    parameters = [ast.Parameter(span, type_, name, span, None) for name, type_, span in item.fields] + method.parameters
    called = program.functions.from_declaration(replace(method, parameters=parameters))
    given = [variable.value for variable in fields.names.values() if variable.value is not None]

    def read_block(low: int, high: int) -> list[np.ndarray]:
        """The elements low to high - 1, by the class's method read(low, high); raises CS0115."""
        ends = [DataValue(ty.INT, (body.dag.runtime_scalar(n, "int", "end"),)) for n in (low, high)]
        with program.inference.context():
            block = program.rules.call(Body(program), called, [*given, *ends], method.name_span)
        sizes = [r.size for r in block.domain if isinstance(r, Range)] if isinstance(block, FunctionValue) else []
        if not isinstance(block, FunctionValue) or sizes != [high - low]:
            message = f"{item.name}.read({low}, {high}) has {sizes[0] if sizes else 'no'} elements"
            raise ProgramError("CS0115", method.name_span, message, f"it yields {high - low}, for {low}..{high}")
        whole = conversions.materialize(Body(program), block, method.name_span)
        return program.make_target(body.dag).evaluate(whole.node)

    type_ = function.type.as_array_type
    node = body.dag.array(type_, item.name, BlockArray(range_, read_block), function.domain)
    return FunctionValue(type_, node, function.domain)


EXPRESSION_RULES: Mapping[type[ast.AstNode], Callable[[Body, Any], Value]] = {
    ast.Literal: lower_literal, ast.Name: lower_name, ast.Blank: fail_misplaced, ast.Slice: fail_misplaced,
    ast.LetIn: lower_let, ast.Unary: lower_unary, ast.Binary: lower_binary, ast.Conditional: lower_conditional,
    ast.Call: lower_call, ast.Cast: lower_cast, ast.ConstructorCall: lower_constructor_call,
    ast.MemberAccess: lower_member_access, ast.WithField: lower_with_field, ast.WithElements: calls.lower_with_elements,
    ast.RangeExpression: domains.lower_range, ast.TupleElement: lower_tuple_element,
}  # fmt: skip
TYPED_RULES: Mapping[type[ast.AstNode], Callable[[Body, Any, ty.Type | None], Value]] = {
    ast.Lambda: lower_lambda, ast.ArrayLiteral: lower_array_literal, ast.TupleExpression: lower_tuple,
}  # fmt: skip


def lower_any_expression(body: Body, tree: ast.AstNode, expected: ty.Type | None) -> Value:
    """An expression of any kind; `expected` is the type that a lambda or an array literal takes on."""
    rule = TYPED_RULES.get(type(tree))
    value = rule(body, tree, expected) if rule is not None else EXPRESSION_RULES[type(tree)](body, tree)
    body.program.note(tree.span, value)
    return value
