"""Lowers the expressions of a body to DAG nodes, and checks them: names, operators, conditionals, casts, members."""

from __future__ import annotations

from functools import partial

from renderer.cdollar.checker.array_literals import lower_array_literal
from renderer.cdollar.checker.classes import make_function_object
from renderer.cdollar.checker.domain_algebra import combine
from renderer.cdollar.checker.elements import ElementLowering
from renderer.cdollar.checker.node_builder import CONSTANTS
from renderer.cdollar.checker.overload_resolution import BOOL_HINT, describe
from renderer.cdollar.checker.scopes import Variable
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.frontend.hints import MEMBERS, SIGNS
from renderer.cdollar.ir import types as ty

SWIZZLES = ("xyzw", "rgba")


class ExpressionLowering(ElementLowering):
    """Lowers the expressions of one body.

    The lowering is one class in layers, a module each, every one with what the next needs (as Clang's Sema is one class
    over many files): names, functions, overload resolution, domains, calls, expressions. `body` is where it is: the
    current scope and the enclosing conditions.
    """

    # Leaves

    def lower(self, tree: ast.AstNode, expected: ty.Type | None = None) -> Value:
        """An expression that is part of a whole one; `expected` is the type that a lambda takes on."""
        if isinstance(tree, ast.Lambda):
            return self._lower_lambda(tree, expected)
        if isinstance(tree, ast.ArrayLiteral):
            self.body.require_host()
            return lower_array_literal(self, tree, expected)
        return getattr(self, "_lower_" + type(tree).__name__)(tree)

    def _lower_Literal(self, tree: ast.Literal) -> Value:
        if tree.kind == "string":
            hint = 'a string names a file: file("big.npy")'
            raise ProgramError("CS0203", tree.span, "a string has no meaning here", hint)
        if tree.kind == "int" and tree.value >= 2**31:
            message = f"{tree.value} is too large for int"
            raise ProgramError("CS0114", tree.span, message, "write it as uint: 4000000000u")
        untyped = tree.kind == "float_literal"
        return self.builder.constant(tree.value, "float" if untyped else tree.kind, untyped)

    def _lower_Name(self, tree: ast.Name) -> Value:
        variable = self.variable(tree.name)
        if variable is not None:
            if variable.value is None:
                raise ProgramError("CS0204", tree.span, f"`{tree.name}` is used before it has a value")
            if not isinstance(variable.value, DataValue):
                self.body.require_host()
            return variable.value
        if self.is_function(tree.name):
            return OverloadSet(tree.name)
        if tree.name in CONSTANTS:
            return self.builder.constant(CONSTANTS[tree.name], "float", True)
        return self.fail_unknown(tree)

    def _lower_Blank(self, tree: ast.Blank) -> Value:
        raise ProgramError("CS0205", tree.span, "an argument is missing here")

    def _lower_Slice(self, tree: ast.Slice) -> Value:
        raise ProgramError("CS0322", tree.span, "a slice has a meaning only in the brackets of an array")

    def _lower_LetIn(self, tree: ast.LetIn) -> Value:
        value = self.let_bind(self._operand(tree.value), tree.value.span)
        with self.body.block() as scope:
            scope.names[tree.name] = Variable(value, None, "shared by `let`")
            return self.lower(tree.body)

    def _lower_lambda(self, tree: ast.Lambda, expected: ty.Type | None) -> Value:
        if isinstance(expected, ty.FunctionType) and len(expected.parameters) != len(tree.parameters):
            message = f"{expected} takes {len(expected.parameters)} parameters, this function {len(tree.parameters)}"
            raise ProgramError("CS0402", tree.span, message)
        return self.lower_bound_function(tree.parameters, tree.body, expected)

    # Operators

    def _lower_Unary(self, tree: ast.Unary) -> Value:
        operand, name = tree.operand, tree.operator
        if name in "+*" and (union := self.union_of(tree)) is not None:
            return self.reduce_boxes(name, *union, tree.span, lambda: self._lower_Unary(tree))
        if name in "+*":
            variables, value = self.lower_reduction_body(tree, operand)
            if variables:
                return self.reduce_by_operator(name, variables, value, tree.span)
            return self._unary(tree, value)
        if name == "-" and isinstance(operand, ast.Literal) and (operand.kind, operand.value) == ("int", 2**31):
            return self.builder.constant(-(2**31), "int")
        return self.promote([self._operand(operand)], lambda v: self._unary(tree, v[0]), tree.span)

    def _unary(self, tree: ast.Unary, value: DataValue) -> DataValue:
        result = self.builder.unary(tree.operator, value) if tree.operator != "*" else None
        if result is None:
            result = self._user_operator(tree, [value])
        if result is not None:
            return result
        if tree.operator == "*":
            message = "`*` before a value reduces by products, but nothing here is reduced"
            is_power = tree.span.source.text[tree.span.start - 1 : tree.span.start] == "*"
            raise ProgramError("CS0308", tree.span, message, SIGNS["**"] if is_power else "there are no pointers")
        message = f"`{tree.operator}` is not defined for {value.type}"
        raise ProgramError("CS0403", tree.span, message, operator_hint(tree.operator, value.type))

    def _lower_Binary(self, tree: ast.Binary) -> Value:
        # A chain a + b + c is a tree that is deep on its left side.
        chain: list[ast.Binary] = []
        left: ast.AstNode = tree
        while isinstance(left, ast.Binary):
            chain.append(left)
            left = left.left
        first = self.lower(left)
        if isinstance(first, DomainValue):
            return self._domain_chain(first, chain)
        value = self.resolve(first, left.span)
        for part in reversed(chain):
            with self.body.guarded(part.operator in ("&&", "||")):
                operands = [value, self._operand(part.right)]
            value = self.promote(operands, partial(self._binary, part), part.span)
        return value

    def _domain_chain(self, value: DomainValue, chain: list[ast.Binary]) -> DomainValue:
        """`a | b`, `a & b`, `a * b` of domains, from left to right; a function serves as its domain."""
        for part in reversed(chain):
            other = self.lower(part.right)
            if isinstance(other, FunctionValue):
                other = DomainValue(other.domain)
            if not isinstance(other, DomainValue):
                shown = describe(other)
                message = f"`{part.operator}` is not defined for a {value.type} and {shown}"
                raise ProgramError("CS0323", part.span, message, "a range is `0..n`, in parentheses: `(0..3) | (5..9)`")
            value = combine(part.operator, value, other, part.span)
        return value

    def _binary(self, tree: ast.Binary, operands: list[DataValue]) -> DataValue:
        a, b = operands
        name, scalars = tree.operator, {ty.scalar_type_of(a.type), ty.scalar_type_of(b.type)}
        if name in ("/", "%") and b.is_literal and scalars <= set(ty.INTEGERS):
            if any(node.attribute.number == 0 for node in b.nodes):
                raise ProgramError("CS0404", tree.span, "this divides an integer by zero")
        result = self.builder.binary(name, a, b)
        if result is None and a.type == b.type and isinstance(a.type, ty.Record) and name in ("==", "!="):
            pairs = zip(a.nodes, b.nodes, strict=True)
            nodes = tuple(self.builder.apply(name, x.type, x, y) for x, y in pairs)
            return self.builder.chain("&&" if name == "==" else "||", nodes)
        if result is None:
            result = self._user_operator(tree, [a, b])
        if result is None:
            hint = operator_hint(name, a.type, b.type)
            if scalars == set(ty.INTEGERS):
                hint = "cast one of them: `(int) x` or `(uint) x`"
            elif ty.BOOL in (a.type, b.type):
                hint = BOOL_HINT
            raise ProgramError("CS0403", tree.span, f"`{name}` is not defined for {a.type} and {b.type}", hint)
        return result

    def _user_operator(self, tree: ast.Unary | ast.Binary, values: list) -> DataValue | None:
        chosen = self.resolve_overload(self.program.functions.get("operator" + tree.operator), values)
        if chosen is None:
            return None
        result = self.call_user(chosen, values, tree)
        assert isinstance(result, DataValue)
        return result

    def _lower_Conditional(self, tree: ast.Conditional) -> Value:
        condition = self._operand(tree.condition)
        if isinstance(condition, DataValue):
            check_condition(condition, tree.condition.span)
        with self.body.guarded():
            if_true, if_false = self._operand(tree.if_true), self._operand(tree.if_false)
        if isinstance(condition, DataValue) and condition.is_closed:
            if isinstance(if_true, FunctionValue) and isinstance(if_false, FunctionValue):
                known = self.program.host.node_number(condition.node)
                if known is not None and if_true.type.as_function_type == if_false.type.as_function_type:
                    return if_true if known else if_false
        return self.select(tree.span, tree.condition.span, condition, if_true, if_false)

    def select(
        self, span: Span, condition_span: Span, condition: Operand, if_true: Operand, if_false: Operand
    ) -> Operand:
        """`condition ? if_true : if_false`, promoted; raises CS0405 or CS0406 if the types do not fit."""

        def select(values: list[DataValue]) -> DataValue:
            check_condition(values[0], condition_span)
            result = self.builder.select(*values)
            if result is None:
                message = f"the two results are {values[1].type} and {values[2].type}"
                raise ProgramError("CS0406", span, message, "cast one to the type of the other")
            return result

        return self.promote([condition, if_true, if_false], select, span)

    # Conversions and members

    def _lower_Cast(self, tree: ast.Cast) -> Value:
        target = self.program.types.resolve(tree.type)
        value = self.lower(tree.operand, target)
        if isinstance(target, ty.FunctionType):
            return self.convert(value, target, tree.operand.span)
        assert isinstance(target, ty.Data)
        operand = self.resolve(value, tree.operand.span)
        return self.promote([operand], lambda v: self.cast(v[0], target, tree.span), tree.span)

    def _lower_ConstructorCall(self, tree: ast.ConstructorCall) -> Value:
        target = self.program.types.resolve(tree.type)
        if isinstance(tree.type, ast.NamedType) and tree.type.name in self.program.types.function_classes:
            return make_function_object(self, self.program.types.function_classes[tree.type.name], tree)
        values = [self._operand(argument) for argument in tree.arguments]
        if isinstance(target, ty.FunctionType):
            raise ProgramError("CS0203", tree.span, f"{target} is made by a cast", f"`({target}) f`")
        if not values:
            raise ProgramError("CS0205", tree.span, f"{target}(...) needs arguments")
        assert isinstance(target, ty.Data)
        return self.promote(values, lambda v: self.construct(target, v, tree), tree.span)

    def _lower_MemberAccess(self, tree: ast.MemberAccess) -> Value:
        if isinstance(tree.subject, ast.Name) and tree.subject.name == "Math" and not self.is_known("Math"):
            name = {"PI": "pi", "E": "e"}.get(tree.name, tree.name.lower())
            return self._lower_Name(ast.Name(tree.name_span, name))
        return self.member_of(self.lower(tree.subject), tree)

    def member_of(self, value: Value, tree: ast.MemberAccess) -> Value:
        """A member of a value: a field, components of a vector, a border mode, an end of a domain."""
        if isinstance(value, DomainValue):
            return self.domain_member(value, tree)
        subject = self.resolve(value, tree.subject.span)
        if isinstance(subject, FunctionValue):
            if tree.name in ast.BORDER_MODES:
                return self.with_border_mode(subject, tree)
            is_field = any(name == tree.name for name, _, _ in ty.fields(subject.type.result))
            if tree.name in ("Length", "length", "size") and not is_field:
                return self.size_of(subject, None, tree.span)
            if tree.name in ("GetLength", "domain"):
                hint = "the extents are `size(f, 0)`, `domain(f)`"
                raise ProgramError("CS0206", tree.name_span, f"no member `{tree.name}`", hint)
        return self.promote([subject], lambda v: member(v[0], tree), tree.span)

    # Parts of mutable variables

    def _lower_WithField(self, tree: ast.WithField) -> Value:
        subject, value = self._operand(tree.subject), self._operand(tree.value)
        return self.promote([subject, value], lambda v: self._with_field(tree, *v), tree.span)

    def _with_field(self, tree: ast.WithField, subject: DataValue, value: DataValue) -> DataValue:
        """A record or vector with another value of a field."""
        for name, type_, first in ty.fields(subject.type):
            if name == tree.name:
                new = self.convert_data(value, type_, tree.value.span).nodes
                return DataValue(subject.type, (*subject.nodes[:first], *new, *subject.nodes[first + len(new) :]))
        known = ", ".join(name for name, _, _ in ty.fields(subject.type)) or "none"
        message = f"{subject.type} has no field `{tree.name}` that can be assigned"
        raise ProgramError("CS0206", tree.span, message, f"fields: {known}")

    def _lower_WithElements(self, tree: ast.WithElements) -> Value:
        return self.lower_with_elements(tree)


def member(value: DataValue, tree: ast.MemberAccess) -> DataValue:
    """A field of a record, or components of a vector by name: `v.zyx`."""
    for name, type_, first in ty.fields(value.type):
        if name == tree.name:
            return DataValue(type_, value.nodes[first : first + len(ty.component_types(type_))])
    if isinstance(value.type, ty.Vector):
        for letters in SWIZZLES:
            indices = [letters.find(c) for c in tree.name]
            if 1 <= len(indices) <= 4 and all(0 <= k < value.type.size for k in indices):
                scalar, size = value.type.scalar_type, len(indices)
                type_ = ty.Vector(scalar, size) if size > 1 else ty.Scalar(scalar)
                return DataValue(type_, tuple(value.nodes[k] for k in indices))
    known = ", ".join(name for name, _, _ in ty.fields(value.type))
    hint = f"members: {known}" if known else MEMBERS.get(tree.name, "a number has no members")
    raise ProgramError("CS0206", tree.name_span, f"{value.type} has no member `{tree.name}`", hint)


def check_condition(value: Operand, span: Span, hint: str = "compare it: `x != 0`") -> DataValue:
    """The condition; raises CS0405 unless it is one bool."""
    if not isinstance(value, DataValue) or value.type != ty.BOOL:
        raise ProgramError("CS0405", span, f"a condition is bool, but this is {value.type}", hint)
    return value


def operator_hint(operator: str, *types: ty.Type) -> str:
    """How types that an operator does not take can be used with it."""
    if ty.BOOL in types:
        return BOOL_HINT
    record = next((t for t in types if isinstance(t, ty.Record)), None)
    if record is not None:
        parameters = ", ".join(f"{t} {name}" for t, name in zip(types, "ab", strict=False))
        return f"define it: `{record} operator {operator}({parameters}) {{ ... }}`"
    return "`^` is the exclusive or of integers; a power is `pow(x, 2)`" if operator == "^" else ""
