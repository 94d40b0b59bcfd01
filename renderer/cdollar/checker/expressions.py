"""Expressions of C$ but for calls: literals, names, lambdas, operators, choices, casts, members."""

from __future__ import annotations

from renderer.cdollar.checker.builtins import CONSTANTS, FUNCTIONS
from renderer.cdollar.checker.values import (
    DataValue,
    DomainValue,
    FunctionValue,
    NotDeviceCode,
    OverloadSet,
    Scope,
    Value,
    Variable,
    is_closed,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, UNKNOWN, Node, Range
from renderer.cdollar.ir.types import (
    BOOL,
    INT,
    FunctionType,
    Record,
    Scalar,
    Type,
    Vector,
    component_types,
    fields,
    scalar_type_of,
)

SWIZZLES = ("xyzw", "rgba")


class Expressions:
    """What Checker knows of expressions; uses its scope, inference_stack and arithmetic."""

    # Dispatch

    def eval(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        if isinstance(tree, ast.Lambda):
            return self.eval_lambda(tree, expected)
        return getattr(self, "eval_" + type(tree).__name__)(tree)

    def eval_data(self, tree: ast.AstNode) -> Value:
        """Data or a function, families settled."""
        return self.settled(self.eval(tree), tree.span)

    def eval_Literal(self, tree: ast.Literal) -> Value:
        if tree.kind == "text":
            raise ProgramError("CS0203", tree.span, "text has no meaning here", 'text names a file: file("big.npy")')
        if tree.kind == "int" and tree.value >= 2**31:
            raise ProgramError(
                "CS0114", tree.span, f"{tree.value} is too large for int", "write it as uint: 4000000000u"
            )
        untyped = tree.kind == "real"
        return self.arithmetic.number(tree.value, "float" if untyped else tree.kind, untyped)

    def eval_Name(self, tree: ast.Name) -> Value:
        variable = self.scope.find(tree.name) or self.compilation.globals.find(tree.name)
        if variable is not None:
            if variable.value is None:
                raise ProgramError("CS0204", tree.span, f"`{tree.name}` is used before it has a value")
            if self.scalar and not isinstance(variable.value, DataValue):
                raise NotDeviceCode
            return variable.value
        if tree.name in self.compilation.overloads or tree.name in FUNCTIONS:
            return OverloadSet(tree.name)
        if tree.name in CONSTANTS:
            return self.arithmetic.number(CONSTANTS[tree.name], "float", True)
        return self.unknown_name(tree)

    def eval_Blank(self, tree: ast.Blank) -> Value:
        raise ProgramError("CS0205", tree.span, "an argument is missing here")

    def eval_RangeExpression(self, tree: ast.RangeExpression) -> Value:
        low, high = self.host_int(tree.low), self.host_int(tree.high)
        if low is None or high is None:
            return DomainValue((UNKNOWN,))
        return DomainValue((Range(low, max(low, high), False, f"{tree.span.short} at {tree.span.at}"),))

    def eval_LetIn(self, tree: ast.LetIn) -> Value:
        value = self.eval_data(tree.value)
        self.scope = Scope(self.scope)
        self.scope.names[tree.name] = Variable(self.shared(value, tree.value.span), None, "shared by `let`")
        try:
            return self.eval(tree.body)
        finally:
            self.scope = self.scope.parent

    def eval_Lambda(self, tree: ast.AstNode) -> Value:
        return self.eval_lambda(tree, None)

    def eval_lambda(self, tree: ast.Lambda, expected: Type | None) -> Value:
        if isinstance(expected, FunctionType) and len(expected.parameters) != len(tree.head):
            raise ProgramError(
                "CS0402",
                tree.span,
                f"{expected} takes {len(expected.parameters)} parameters, this function {len(tree.head)}",
            )
        return self.head_function(tree.head, tree.body, expected)

    def shared(self, value: Value, span: Span) -> Value:
        """Evaluated once: the paper's let node."""
        if isinstance(value, FunctionValue):
            return self.evaluated(value, span)
        if isinstance(value, DataValue) and not self.scalar:
            nodes = tuple(
                self.dag.intern("let", n.type, (n,)) if n.op in ("apply", "reduce") else n for n in value.nodes
            )
            return DataValue(value.type, nodes)
        return value

    def evaluated(self, value: FunctionValue, span: Span) -> FunctionValue:
        """The cast to an array type: a function that is computed once, at every point of its domain."""
        domain = self.flat_domain(value)
        if any(range_ is INFINITE for range_ in domain):
            position = [range_ is INFINITE for range_ in domain].index(True)
            raise ProgramError(
                "CS0306", span, f"{span.short} cannot become an array: its {ordinal(position)} dimension is infinite",
                "restrict it: `var f(i : 0..n) = ...`",
            )  # fmt: skip
        array = FunctionType(value.type.result, value.type.parameters, True)
        if value.node.op == "function" and isinstance(value.node.attribute, tuple):
            if any(r is NOT_INFERRED for r in domain):
                raise ProgramError(
                    "CS0307", span, f"the domain of {span.short} is not known yet here", "restrict its variables"
                )
            node = self.dag.intern("let", array, (value.node,))
            return FunctionValue(array, node, domain)
        return FunctionValue(array, value.node, value.own_domain, value.borders)

    def settled(self, value: Value, span: Span) -> Value:
        """Data or a function; a family of overloads becomes its only or its float member."""
        if isinstance(value, OverloadSet):
            return self.family_as_function(value, None, span)
        if isinstance(value, DomainValue):
            raise ProgramError(
                "CS0203", span, "a domain has no meaning here", "a domain restricts a bound variable: `i : 0..n`"
            )
        return value

    # Operators

    def eval_Unary(self, tree: ast.Unary) -> Value:
        if tree.operator in "+*":
            variables, value = self.reduced_body(tree, tree.operand)
            if variables:
                return self.join(tree.operator, variables, value, tree)
            return self.unary(tree, value)
        if (
            tree.operator == "-"
            and isinstance(tree.operand, ast.Literal)
            and tree.operand.kind == "int"
            and tree.operand.value == 2**31
        ):
            return self.arithmetic.number(-(2**31), "int")
        value = self.eval_data(tree.operand)
        return self.promoted([value], lambda v: self.unary(tree, v[0]), tree.span)

    def unary(self, tree: ast.Unary, value: DataValue) -> DataValue:
        found = self.arithmetic.unary(tree.operator, value) if tree.operator != "*" else None
        if found is None:
            found = self.user_operator(tree.operator, [value], tree.span)
        if found is None:
            if tree.operator == "*":
                raise ProgramError(
                    "CS0308",
                    tree.span,
                    "`*` before a value reduces by products, but nothing here is reduced",
                    "there are no pointers",
                )
            raise ProgramError(
                "CS0403",
                tree.span,
                f"`{tree.operator}` is not defined for {value.type}",
                self.operator_hint(value.type),
            )
        return found

    def operator_hint(self, type_: Type) -> str:
        if type_ == BOOL:
            return "make it a number: `b ? 1 : 0`"
        return f"define it: `{type_} operator +({type_} a, {type_} b) {{ ... }}`" if isinstance(type_, Record) else ""

    def eval_Binary(self, tree: ast.Binary) -> Value:
        operands = []
        part = tree
        # A chain a + b + c is a tree that is deep on its left side.
        chain = []
        while isinstance(part, ast.Binary):
            chain.append(part)
            part = part.left
        value = self.eval_data(part)
        for part in reversed(chain):
            if part.operator in ("&&", "||"):
                self.guarded += 1
            try:
                operands = [value, self.eval_data(part.right)]
            finally:
                self.guarded -= part.operator in ("&&", "||")
            value = self.promoted(operands, lambda v, part=part: self.binary(part, v[0], v[1]), part.span)
        return value

    def binary(self, tree: ast.Binary, a: DataValue, b: DataValue) -> DataValue:
        name = tree.operator
        if (
            name in ("/", "%")
            and b.is_literal
            and scalar_type_of(b.type) in ("int", "uint")
            and scalar_type_of(a.type) in ("int", "uint")
        ):
            if any(node.attribute.number == 0 for node in b.nodes):
                raise ProgramError("CS0404", tree.span, "this divides an integer by zero")
        found = self.arithmetic.binary(name, a, b)
        if found is None and a.type == b.type and isinstance(a.type, Record) and name in ("==", "!="):
            found = self.records_equal(name, a, b)
        if found is None:
            found = self.user_operator(name, [a, b], tree.span)
        if found is None:
            raise ProgramError(
                "CS0403", tree.span, self.no_operator(name, a.type, b.type), self.mixed_hint(a.type, b.type)
            )
        return found

    def records_equal(self, name: str, a: DataValue, b: DataValue) -> DataValue:
        pairs = zip(a.nodes, b.nodes, strict=True)
        nodes = tuple(self.arithmetic.operate(name, x.type, x, y) for x, y in pairs)
        return self.arithmetic.joined("&&" if name == "==" else "||", nodes)

    def no_operator(self, name: str, a: Type, b: Type) -> str:
        return f"`{name}` is not defined for {a} and {b}"

    def mixed_hint(self, a: Type, b: Type) -> str:
        if {scalar_type_of(a), scalar_type_of(b)} == {"int", "uint"}:
            return "cast one of them: `(int) x` or `(uint) x`"
        if BOOL in (a, b):
            return "make a bool a number: `b ? 1 : 0`"
        return self.operator_hint(a if isinstance(a, Record) else b)

    def user_operator(self, name: str, values: list[DataValue], span: Span) -> DataValue | None:
        family = self.compilation.overloads.get("operator" + name)
        if not family:
            return None
        chosen = self.choose(family, values)
        return self.call_user(chosen, values, span) if chosen else None

    def eval_Conditional(self, tree: ast.Conditional) -> Value:
        condition = self.eval_data(tree.condition)
        if isinstance(condition, DataValue) and condition.type != BOOL:
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "compare it: `x != 0`",
            )
        self.guarded += 1
        try:
            yes, no = self.eval_data(tree.if_true), self.eval_data(tree.if_false)
        finally:
            self.guarded -= 1
        if isinstance(condition, DataValue) and (isinstance(yes, FunctionValue) and isinstance(no, FunctionValue)):
            known = self.compilation.host_number(condition) if is_closed(condition) else None
            if known is not None and yes.type.as_function_type == no.type.as_function_type:
                return yes if known else no
        return self.promoted([condition, yes, no], lambda v: self.choose_value(tree, *v), tree.span)

    def choose_value(self, tree: ast.Conditional, condition: DataValue, yes: DataValue, no: DataValue) -> DataValue:
        if condition.type != BOOL:
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "compare it: `x != 0`",
            )
        found = self.arithmetic.select(condition, yes, no)
        if found is None:
            raise ProgramError(
                "CS0406",
                tree.span,
                f"the two results are {yes.type} and {no.type}",
                "cast one to the type of the other",
            )
        return found

    def eval_Cast(self, tree: ast.Cast) -> Value:
        target = self.compilation.type_of(tree.type)
        value = self.eval(tree.operand, target)
        if isinstance(target, FunctionType):
            return self.convert(value, target, tree.operand.span, explicit=True)
        value = self.settled(value, tree.operand.span)
        return self.promoted([value], lambda v: self.cast(v[0], target, tree.span), tree.span)

    def cast(self, value: DataValue, target: Type, span: Span) -> DataValue:
        """An explicit conversion between numbers or vectors of numbers."""
        if value.type == target:
            return value
        source_base, target_base = scalar_type_of(value.type), scalar_type_of(target)
        same_shape = isinstance(value.type, Scalar) == isinstance(target, Scalar)
        if isinstance(target, Vector):
            if isinstance(value.type, Scalar) and source_base != "bool":
                one = self.cast(value, Scalar(target.scalar_type), span)
                return DataValue(target, one.nodes * target.size)
            same_shape = same_shape and value.type.size == target.size
        if (
            not same_shape
            or source_base is None
            or target_base is None
            or (source_base == "bool") != (target_base == "bool")
        ):
            hint = (
                "make a bool a number: `b ? 1 : 0`"
                if value.type == BOOL
                else ("compare it: `x != 0`" if target == BOOL else "")
            )
            raise ProgramError("CS0407", span, f"{value.type} cannot be cast to {target}", hint)
        return self.arithmetic.coerce(value, target_base)

    def eval_ConstructorCall(self, tree: ast.ConstructorCall) -> Value:
        target = self.compilation.type_of(tree.type)
        values = [self.eval_data(argument) for argument in tree.arguments]
        if isinstance(target, FunctionType):
            raise ProgramError("CS0203", tree.span, f"{target} is made by a cast", f"`({target}) f`")
        if not values:
            raise ProgramError("CS0205", tree.span, f"{target}(...) needs arguments")
        return self.promoted(values, lambda v: self.construct(target, v, tree), tree.span)

    def construct(self, target: Type, values: list[DataValue], tree: ast.ConstructorCall) -> DataValue:
        if isinstance(target, Record):
            if len(values) != len(target.fields):
                wanted = ", ".join(f"{type_} {name}" for name, type_ in target.fields)
                raise ProgramError(
                    "CS0402",
                    tree.span,
                    f"{target} has {len(target.fields)} fields ({wanted}), but {len(values)} values are given",
                )
            parts = [
                self.convert(value, type_, argument.span)
                for value, (_, type_), argument in zip(values, target.fields, tree.arguments, strict=True)
            ]
            return DataValue(target, tuple(node for part in parts for node in part.nodes))
        if len(values) == 1 and (
            isinstance(target, Scalar) or not isinstance(values[0].type, Vector) or values[0].type.size == target.size
        ):
            return self.cast(values[0], target, tree.span)
        nodes: list[Node] = []
        for value, argument in zip(values, tree.arguments, strict=True):
            if scalar_type_of(value.type) in (None, "bool"):
                raise ProgramError("CS0407", argument.span, f"{value.type} cannot be part of {target}")
            nodes += self.arithmetic.coerce(value, scalar_type_of(target)).nodes
        size = target.size if isinstance(target, Vector) else 1
        if len(nodes) != size:
            raise ProgramError("CS0402", tree.span, f"{target} has {size} components, but {len(nodes)} are given")
        return DataValue(target, tuple(nodes))

    # Members

    def eval_MemberAccess(self, tree: ast.MemberAccess) -> Value:
        if isinstance(tree.subject, ast.Name) and tree.subject.name == "Math" and self.lookup_kind("Math") is None:
            return self.eval_Name(ast.Name(tree.name_span, {"PI": "pi", "E": "e"}.get(tree.name, tree.name.lower())))
        subject = self.eval(tree.subject)
        if isinstance(subject, DomainValue):
            return self.domain_member(subject, tree)
        subject = self.settled(subject, tree.subject.span)
        if isinstance(subject, FunctionValue):
            if tree.name in ast.BORDER_MODES:
                return self.bordered(subject, tree)
            if tree.name in ("Length", "length", "size") and not any(
                f[0] == tree.name for f in fields(subject.type.result)
            ):
                return self.size_of(subject, None, tree.span)
            if tree.name in ("GetLength", "domain"):
                raise ProgramError(
                    "CS0206", tree.name_span, f"`{tree.name}` is no member", "the extents are `size(f, 0)`, `domain(f)`"
                )
        return self.promoted([subject], lambda v: self.member(v[0], tree), tree.span)

    def bordered(self, subject: FunctionValue, tree: ast.MemberAccess) -> FunctionValue:
        if any(p != INT for p in subject.type.parameters):
            raise ProgramError("CS0309", tree.name_span, f"a border mode needs int indices, but this is {subject.type}")
        for position, range_ in enumerate(self.flat_domain(subject)):
            if range_ is INFINITE:
                raise ProgramError(
                    "CS0309",
                    tree.name_span,
                    f"the {ordinal(position)} dimension of {tree.subject.span.short} is infinite: it has no border",
                )
        if tree.name == "zero" and isinstance(subject.type.result, Record):
            raise ProgramError(
                "CS0309", tree.name_span, f"{subject.type.result} has no zero", "use clamp, wrap or mirror"
            )
        return FunctionValue(
            subject.type.as_function_type, subject.node, subject.own_domain, (tree.name,) * len(subject.type.parameters)
        )

    def member(self, value: DataValue, tree: ast.MemberAccess) -> DataValue:
        for name, type_, first in fields(value.type):
            if name == tree.name:
                return DataValue(type_, value.nodes[first : first + len(component_types(type_))])
        if isinstance(value.type, Vector):
            for letters in SWIZZLES:
                places = [letters.find(c) for c in tree.name]
                if 1 <= len(places) <= 4 and all(0 <= p < value.type.size for p in places):
                    nodes = tuple(value.nodes[p] for p in places)
                    return DataValue(
                        Scalar(value.type.scalar_type)
                        if len(nodes) == 1
                        else Vector(value.type.scalar_type, len(nodes)),
                        nodes,
                    )
        known = ", ".join(name for name, _, _ in fields(value.type))
        hint = f"members: {known}" if known else "a number has no members"
        raise ProgramError("CS0206", tree.name_span, f"{value.type} has no member `{tree.name}`", hint)
