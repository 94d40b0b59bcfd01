"""Calls and indices, tried in the paper's order: ordinary, user-defined, reduction, currying, promotion."""

from __future__ import annotations

from typing import Protocol

from renderer.cdollar.checker.builtins import FUNCTIONS, BuiltinFunctions
from renderer.cdollar.checker.domains import DomainLowering
from renderer.cdollar.checker.overload_resolution import BodyTools, is_exact_match
from renderer.cdollar.checker.reductions import ReductionLowering
from renderer.cdollar.checker.values import (
    Argument,
    BlankValue,
    DataValue,
    DomainValue,
    FunctionValue,
    Operand,
    OverloadSet,
    UserFunction,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import BoundVariable
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import FunctionType, Scalar, Type


class ExpressionLowerer(Protocol):
    """Lowers expressions of one body."""

    def lower(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """The value of an expression that is part of a whole one."""

    def lower_expression(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """The value of a whole expression."""


class CallLowering:
    """Lowers the calls of one body."""

    def __init__(
        self, tools: BodyTools, domains: DomainLowering, reductions: ReductionLowering, expressions: ExpressionLowerer
    ):
        self.program, self.body, self.names, self.functions = tools.program, tools.body, tools.names, tools.functions
        self.resolver, self.user_calls, self.domains = tools.resolver, tools.user_calls, domains
        self.reductions, self.expressions = reductions, expressions
        self.builtins = BuiltinFunctions(tools.program.builder)

    def lower_call(self, tree: ast.Call) -> Value:
        """A call of a function by name, an index of a function's value, or the dimension of a domain."""
        if tree.restrictions and not self.names.is_reduction_call(tree):
            raise ProgramError(
                "CS0310", tree.restrictions[0].span, "a restriction belongs to a reduction",
                "`sum(a(i), i : 0..n)`, or a statement of its own: `i : 0..n;`",
            )  # fmt: skip
        callee = tree.callee
        if isinstance(callee, ast.MemberAccess) and callee.name == "GetLength" and len(tree.arguments) == 1:
            subject = self.resolver.resolve(self.expressions.lower(callee.subject), callee.subject.span)
            if isinstance(subject, FunctionValue):
                return self.domains.size_of(subject, tree.arguments[0], tree.span)
        function = self.expressions.lower(callee)
        if isinstance(function, OverloadSet):
            return self._call_by_name(function.name, tree)
        if isinstance(function, DomainValue):
            return self.domains.domain_index(function, tree)
        if not isinstance(function, FunctionValue):
            message = f"{callee.span.excerpt} is {function.type}, not a function"
            raise ProgramError("CS0408", callee.span, message)
        return self.apply(function, [self._argument(argument) for argument in tree.arguments], tree)

    def _argument(self, tree: ast.AstNode, expected: Type | None = None) -> Argument:
        return BlankValue() if isinstance(tree, ast.Blank) else self.expressions.lower(tree, expected)

    # Functions by name

    def _call_by_name(self, name: str, tree: ast.Call) -> Value:
        overloads = self.program.functions.get(name)
        if name == "fold" and not overloads:
            return self.reductions.lower_fold(tree)
        if self.names.is_reduction_call(tree) and not isinstance(tree.arguments[0], ast.Blank):
            return self.reductions.reduce_call(
                name, overloads, tree, lambda values: self._call_overloaded(name, overloads, values, tree)
            )
        if not overloads:
            result = self.domains.call_builtin(name, tree)
            if result is not None:
                return result
        expected = overloads[0].parameter_types if len(overloads) == 1 else ()
        values = [
            self._argument(argument, expected[position] if position < len(expected) else None)
            for position, argument in enumerate(tree.arguments)
        ]
        return self._call_overloaded(name, overloads, values, tree)

    def _call_overloaded(self, name: str, overloads: list[UserFunction], values: list, tree: ast.Call) -> Value:
        """The call in the paper's order, a function of the program before a built-in one only if it fits exactly."""
        has_blanks = any(isinstance(v, BlankValue) for v in values)
        is_data = all(isinstance(v, DataValue) for v in values)
        if not has_blanks:
            chosen = self.resolver.resolve_overload(overloads, values)
            if chosen is not None:
                is_builtin = name in OPERATIONS and is_data and self.program.builder.function(name, values) is not None
                if not is_builtin or is_exact_match(chosen, values):
                    return self._call_user(chosen, values, tree)
            builtin = self.builtins.call(name, values) if name in FUNCTIONS and is_data else None
            if builtin is not None:
                return builtin
            completed = self._with_default_arguments(overloads, values)
            if completed is not None:
                return self._promote_user_call(*completed, tree)
        partial = [f for f in overloads if len(values) < len(f.parameter_types) + has_blanks]
        if partial and (has_blanks or not any(len(f.parameter_types) == len(values) for f in overloads)):
            return self._curry_overload(partial[0], values, tree)
        resolved = self._resolved(values, tree)
        promoted = self.resolver.resolve_overload(overloads, resolved, promote=True)
        if promoted is not None:
            return self._promote_user_call(promoted, resolved, tree)
        if name in FUNCTIONS and not has_blanks and any(isinstance(v, FunctionValue) for v in resolved):
            return self.functions.promote(resolved, lambda v: self._call_builtin(name, v, tree), tree.span)
        return self.resolver.fail(name, overloads, values, tree.span)

    def _resolved(self, values: list[Argument], tree: ast.Call) -> list:
        spans = [argument.span for argument in tree.arguments] + [tree.span] * len(values)
        pairs = zip(values, spans, strict=False)
        return [v if isinstance(v, BlankValue) else self.resolver.resolve(v, span) for v, span in pairs]

    def _call_builtin(self, name: str, values: list[DataValue], tree: ast.Call) -> DataValue:
        result = self.builtins.call(name, values)
        return result if result is not None else self.resolver.fail(name, [], list(values), tree.span)

    def _with_default_arguments(
        self, overloads: list[UserFunction], values: list[Value]
    ) -> tuple[UserFunction, list[Value]] | None:
        """A function whose last parameters have defaults, and the values with these."""
        for function in overloads:
            defaults = [p.default for p in function.declaration.parameters[len(values) :]]
            if not defaults or None in defaults:
                continue
            with self.body.isolated():
                full = values + [self.expressions.lower_expression(tree) for tree in defaults if tree is not None]
            if self.resolver.resolve_overload([function], list(full), promote=True) is not None:
                return function, full
        return None

    def _call_user(self, function: UserFunction, values: list, tree: ast.Call) -> Value:
        spans = [argument.span for argument in tree.arguments]
        return self.call_user(function, values, tree.span, spans)

    def call_user(self, function: UserFunction, values: list, span: Span, spans: list[Span]) -> Value:
        """A call of a function of the program; `spans` are those of the arguments, `span` that of the call."""
        triples = zip(values, function.parameter_types, spans + [span] * len(values), strict=False)
        converted = [self.resolver.convert(value, type_, where) for value, type_, where in triples]
        return self.user_calls.call(function, converted, span, self.body)

    def _promote_user_call(self, function: UserFunction, values: list, tree: ast.Call) -> Operand:
        """Promotes a call: functions are applied pointwise for data parameters, and passed on for functional ones."""
        is_functional = [isinstance(type_, FunctionType) for type_ in function.parameter_types]
        lifted = [v for v, functional in zip(values, is_functional, strict=True) if not functional]

        def call(data: list[DataValue]) -> DataValue:
            rest = iter(data)
            full = [v if functional else next(rest) for v, functional in zip(values, is_functional, strict=True)]
            result = self._call_user(function, full, tree)
            if not isinstance(result, DataValue):
                message = f"{function.name} returns a function: it cannot be promoted"
                raise ProgramError("CS0410", tree.span, message)
            return result

        return self.functions.promote(lifted, call, tree.span)

    # Functions as values

    def apply(self, function: FunctionValue, arguments: list[Argument], tree: ast.Call) -> Value:
        """Ordinary application; currying if arguments are missing or blank; promotion if some are functions."""
        self.body.require_host()
        count = len(function.type.parameters)
        if len(arguments) > count:
            message = f"it takes {count} arguments, {len(arguments)} are given"
            raise ProgramError("CS0402", tree.span, f"{tree.callee.span.excerpt} is {function.type}: {message}")
        values = self._resolved(arguments + [BlankValue()] * (count - len(arguments)), tree)
        blanks = [isinstance(value, BlankValue) for value in values]
        if all(blanks):
            return function
        if any(blanks):
            return self._curry(function, values, tree)
        return self.functions.promote(values, lambda v: self._index(function, v, frozenset(), tree), tree.span)

    def _curry(self, function: FunctionValue, values: list, tree: ast.Call) -> FunctionValue:
        """`a(2)`, `a(, k)`: a function of the dimensions that are left free."""
        free: list[BoundVariable] = []
        for position, value in enumerate(values):
            if isinstance(value, BlankValue):
                type_ = function.type.parameters[position]
                if not isinstance(type_, Scalar):
                    raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
                free.append(BoundVariable(f"_{position}", type_.name, function.domain_with_borders[position]))
                values[position] = DataValue(type_, (self.program.dag.bound_variable(free[-1]),))
        value = self.functions.promote(values, lambda v: self._index(function, v, frozenset(free), tree), tree.span)
        if isinstance(value, FunctionValue):
            message = "blanks and functions cannot be mixed as arguments"
            raise ProgramError("CS0409", tree.span, message, "name the free dimensions: `var r(k) = ...`")
        return self.functions.make_function(free, value)

    def _index(
        self, function: FunctionValue, values: list[DataValue], free: frozenset[BoundVariable], tree: ast.Call
    ) -> DataValue:
        spans = [argument.span for argument in tree.arguments] + [tree.span] * len(values)
        triples = zip(values, function.type.parameters, spans, strict=False)
        converted = [self.resolver.convert_data(value, type_, span) for value, type_, span in triples]
        return self.functions.apply_at(function, converted, tree.span, free)

    def _curry_overload(self, function: UserFunction, values: list[Argument], tree: ast.Call) -> Value:
        if not function.takes_data:
            return self.resolver.fail(function.name, [function], values, tree.span)
        return self.apply(self.resolver.user_function(function, tree.span), values, tree)
