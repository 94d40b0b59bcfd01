"""Calls and indices, tried in the paper's order (ordinary, user-defined, reduction, currying, promotion); reductions.

A reduction's body has bound variables; its elements are combined by an operator or by a function of the program. A fold
combines them in order, from a start.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import chain, repeat, zip_longest

from renderer.cdollar.checker.domains import DomainLowering
from renderer.cdollar.checker.functions import make_function
from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.program import Body, UserFunction
from renderer.cdollar.checker.scopes import NameRestriction
from renderer.cdollar.checker.slices import lower_slice, sliced_index
from renderer.cdollar.checker.values import (
    Blank,
    DataValue,
    DomainValue,
    FunctionValue,
    Operand,
    OverloadSet,
    SliceArgument,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.dag import INFINITE, BoundVariable, Node, Reduction, tuple_type
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES


class CallLowering(DomainLowering):
    """Lowers the calls, indices and reductions of one body."""

    def _lower_Call(self, tree: ast.Call) -> Value:
        """A call of a function by name, an index of a function's value, or the dimension of a domain."""
        if tree.restrictions and not self.is_reduction_call(tree):
            raise ProgramError(
                "CS0310", tree.restrictions[0].span, "a restriction belongs to a reduction",
                "`sum(a(i), i : 0..n)`, or a statement of its own: `i : 0..n;`",
            )  # fmt: skip
        callee = tree.callee
        if isinstance(callee, ast.MemberAccess) and callee.name == "GetLength" and len(tree.arguments) == 1:
            subject = self.resolve(self.lower(callee.subject), callee.subject.span)
            if isinstance(subject, FunctionValue):
                return self.size_of(subject, tree.arguments[0], tree.span)
        if isinstance(callee, ast.MemberAccess) and callee.name in self.program.functions.method_names:
            subject = self.resolve(self.lower(callee.subject), callee.subject.span)
            called = self._call_method(subject, callee, tree)
            if called is not None:
                return called
            function: Value = self.member_of(subject, callee)
        else:
            function = self.lower(callee)
        if isinstance(function, OverloadSet):
            return self._call_by_name(function.name, tree)
        if isinstance(function, DomainValue):
            return self.domain_index(function, tree)
        if not isinstance(function, FunctionValue):
            raise ProgramError("CS0408", callee.span, f"{callee.span.excerpt} is {function.type}, not a function")
        return self.apply(function, self._indices(function, tree), tree)

    @abstractmethod
    def member_of(self, value: Value, tree: ast.MemberAccess) -> Value:
        """A member of a value."""

    def _call_method(self, subject: Operand, callee: ast.MemberAccess, tree: ast.Call) -> Value | None:
        """A method of the class of a value, or of each element of a function; None if there is none."""
        data = subject.type.result if isinstance(subject, FunctionValue) else subject.type
        name = f"{data}.{callee.name}"
        if name not in self.program.functions:
            return None
        values = [subject, *(self._argument(argument) for argument in tree.arguments)]
        overloads = self.program.functions.get(name) + self.user_calls.generics.for_values(name, values)
        whole = ast.Call(tree.span, callee, [callee.subject, *tree.arguments])
        return self._call_overloaded(name, overloads, values, whole)

    def _indices(self, function: FunctionValue, tree: ast.Call) -> list[Value | Blank]:
        """The arguments of an index; slices need the domain."""
        dimensions = function.domain_with_borders
        return [
            lower_slice(self, argument, dimensions[k] if k < len(dimensions) else INFINITE)
            if isinstance(argument, ast.Slice)
            else self._argument(argument)
            for k, argument in enumerate(tree.arguments)
        ]

    def _argument(self, tree: ast.AstNode, expected: ty.Type | None = None) -> Value | Blank:
        if isinstance(tree, ast.Slice):
            raise ProgramError(
                "CS0322", tree.span, "a slice is a part of an array, not of what a function is called for"
            )
        return Blank() if isinstance(tree, ast.Blank) else self.lower(tree, expected)

    # Functions by name

    def _call_by_name(self, name: str, tree: ast.Call) -> Value:
        overloads = self.program.functions.get(name)
        if name == "fold" and not overloads:
            return self.lower_fold(tree)
        if self.is_reduction_call(tree) and not isinstance(tree.arguments[0], ast.Blank):
            return self.reduce_call(name, overloads, tree)
        if not overloads:
            result = self.call_builtin(name, tree)
            if result is not None:
                return result
        expected = overloads[0].parameter_types if len(overloads) == 1 else ()
        pairs = zip_longest(tree.arguments, expected[: len(tree.arguments)])
        values = [self._argument(argument, type_) for argument, type_ in pairs]
        overloads = overloads + self.user_calls.generics.for_values(name, values)
        return self._call_overloaded(name, overloads, values, tree)

    def _call_overloaded(self, name: str, overloads: list[UserFunction], values: list, tree: ast.Call) -> Value:
        """The call in the paper's order, a function of the program before a built-in one only if it fits exactly."""
        has_blanks = any(isinstance(v, Blank) for v in values)
        is_data = all(isinstance(v, DataValue) for v in values)
        if not has_blanks:
            chosen = self.resolve_overload(overloads, values)
            if chosen is not None:
                is_builtin = name in OPERATIONS and is_data and self.builder.function(name, values) is not None
                if not is_builtin or tuple(v.type for v in values) == chosen.parameter_types:
                    return self.call_user(chosen, values, tree)
            builtin = self.builder.call(name, values) if name in FUNCTIONS and is_data else None
            if builtin is not None:
                return builtin
            completed = self._with_default_arguments(overloads, values)
            if completed is not None:
                return self._promote_user_call(*completed, tree)
        partial = [f for f in overloads if len(values) < len(f.parameter_types) + has_blanks]
        if partial and (has_blanks or not any(len(f.parameter_types) == len(values) for f in overloads)):
            if not partial[0].takes_data:
                return self.fail_overload(name, partial[:1], values, tree.span)
            return self.apply(self.user_function(partial[0], tree.span), values, tree)
        resolved = self._resolved(values, tree)
        promoted = self.resolve_overload(overloads, resolved, promote=True)
        if promoted is not None:
            return self._promote_user_call(promoted, resolved, tree)
        if name in FUNCTIONS and not has_blanks and any(isinstance(v, FunctionValue) for v in resolved):
            return self.promote(resolved, lambda v: self._call_builtin(name, v, tree), tree.span)
        return self.fail_overload(name, overloads, values, tree.span)

    def _resolved(self, values: list[Value | Blank], tree: ast.Call) -> list:
        pairs = zip(values, argument_spans(tree), strict=False)
        return [v if isinstance(v, (Blank, DomainValue)) else self.resolve(v, span) for v, span in pairs]

    def _call_builtin(self, name: str, values: list[DataValue], tree: ast.Call) -> DataValue:
        result = self.builder.call(name, values)
        return result if result is not None else self.fail_overload(name, [], list(values), tree.span)

    def _with_default_arguments(
        self, overloads: list[UserFunction], values: list[Value]
    ) -> tuple[UserFunction, list[Value]] | None:
        """A function whose last parameters have defaults, and the values with these."""
        for function in overloads:
            defaults = [p.default for p in function.declaration.parameters[len(values) :]]
            if not defaults or None in defaults:
                continue
            apart = type(self)(self.program, self.user_calls, Body(in_device_code=self.body.in_device_code))
            full = values + [apart.lower_expression(tree) for tree in defaults if tree is not None]
            if self.resolve_overload([function], list(full), promote=True) is not None:
                return function, full
        return None

    def call_user(self, function: UserFunction, values: list, tree: ast.AstNode) -> Value:
        """A call of a function of the program, or of its operator."""
        triples = zip(values, function.parameter_types, argument_spans(tree), strict=False)
        converted = [self.convert(value, type_, where) for value, type_, where in triples]
        return self.user_calls.call(function, converted, tree.span, self.body)

    def _promote_user_call(self, function: UserFunction, values: list, tree: ast.Call) -> Operand:
        """Promotes a call: functions are applied pointwise for data parameters, and passed on for functional ones."""
        is_functional = [not isinstance(type_, ty.Data) for type_ in function.parameter_types]
        lifted = [v for v, functional in zip(values, is_functional, strict=True) if not functional]

        def call(data: list[DataValue]) -> DataValue:
            rest = iter(data)
            full = [v if functional else next(rest) for v, functional in zip(values, is_functional, strict=True)]
            result = self.call_user(function, full, tree)
            if not isinstance(result, DataValue):
                raise ProgramError("CS0410", tree.span, f"{function.name} returns a function: it cannot be promoted")
            return result

        return self.promote(lifted, call, tree.span)

    # Functions as values

    def apply(self, function: FunctionValue, arguments: list[Value | Blank], tree: ast.Call) -> Value:
        """Ordinary application; currying if arguments are missing or blank; promotion if some are functions."""
        self.body.require_host()
        count = len(function.type.parameters)
        if len(arguments) > count:
            message = f"it takes {count} arguments, {len(arguments)} are given"
            raise ProgramError("CS0402", tree.span, f"{tree.callee.span.excerpt} is {function.type}: {message}")
        values = self._resolved(arguments + [Blank()] * (count - len(arguments)), tree)
        blanks = [isinstance(value, Blank) for value in values]
        if all(type(value) is Blank for value in values):
            return function
        if any(blanks):
            return self._curry(function, values, tree)
        return self.promote(values, lambda v: self._index(function, v, frozenset(), tree), tree.span)

    def _curry(self, function: FunctionValue, values: list, tree: ast.Call) -> FunctionValue:
        """`a(2)`, `a(, k)`: a function of the dimensions that are left free."""
        free: list[BoundVariable] = []
        for position, value in enumerate(values):
            if isinstance(value, Blank):
                type_ = function.type.parameters[position]
                if not isinstance(type_, ty.Scalar):
                    raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
                free.append(BoundVariable(f"_{position}", type_.name, function.domain_with_borders[position]))
                values[position] = DataValue(type_, (self.dag.bound_variable(free[-1]),))
                if isinstance(value, SliceArgument):
                    values[position] = sliced_index(self.builder, free[-1], value)
        value = self.promote(values, lambda v: self._index(function, v, frozenset(free), tree), tree.span)
        if isinstance(value, FunctionValue):
            message = "blanks and functions cannot be mixed as arguments"
            raise ProgramError("CS0409", tree.span, message, "name the free dimensions: `var r(k) = ...`")
        return make_function(self.dag, free, value)

    def _index(
        self, function: FunctionValue, values: list[DataValue], free: frozenset[BoundVariable], tree: ast.Call
    ) -> DataValue:
        triples = zip(values, function.type.parameters, argument_spans(tree), strict=False)
        converted = [self.convert_data(value, type_, span) for value, type_, span in triples]
        return self.apply_at(function, converted, tree.span, free)

    # Bodies of reductions

    def lower_body(self, tree: ast.Unary | ast.Call, operand: ast.AstNode) -> tuple[list[BoundVariable], Operand]:
        """The variables that a reduction binds, and the value of its operand, lowered in a scope of its own."""
        context = self.program.inference.current
        names = context.binders.get(id(tree), []) if context is not None else []
        with self.body.block():
            variables = [v for r in tree.restrictions for v in self.reduced_variables(r)]
            if names or variables:
                self.body.require_host()
            for name in names:
                declared = NameRestriction(self.type_from_first_use(name, operand), None, tree.span)
                variables.append(self.new_variable(name, tree.span, True, declared))
            return variables, self._operand(operand)

    def lower_reduction_body(
        self, tree: ast.Unary | ast.Call, operand: ast.AstNode
    ) -> tuple[list[BoundVariable], DataValue]:
        """As `lower_body`; of a function, all its dimensions are reduced too."""
        return self.eta_expand_reduced(*self.lower_body(tree, operand), operand, tree.span)

    def eta_expand_reduced(
        self, variables: list[BoundVariable], value: Operand, operand: ast.AstNode, span: Span
    ) -> tuple[list[BoundVariable], DataValue]:
        """Adds the dimensions of a function to the reduced variables."""
        if not isinstance(value, FunctionValue):
            return variables, value
        self.body.require_host()
        added, data = self.eta_expand(value, operand.span)
        for variable in added:
            variable.reduced = True
            if variable.range is INFINITE:
                message = f"{operand.span.excerpt} is reduced, but its domain is infinite"
                raise ProgramError("CS0304", span, message, "restrict its variables: `var f(i : 0..n) = ...`")
        return variables + added, data

    # Reductions over unions of boxes

    def union_of(self, tree: ast.Unary | ast.Call) -> tuple[ast.Restriction, DomainValue] | None:
        """The first restriction of a reduction whose domain is a union, with this; None if there is none."""
        for restriction in tree.restrictions:
            if restriction.domain is not None and id(restriction) not in self.chosen_boxes:
                value = self.lower(restriction.domain)
                if isinstance(value, DomainValue) and value.more:
                    return restriction, value
        return None

    def reduce_boxes(
        self, name: str, restriction: ast.Restriction, domain: DomainValue, span: Span, reduce: Callable[[], Value]
    ) -> DataValue:
        """The reductions over the boxes of a union, combined by the operator; raises CS0323 if that is not possible."""
        total: DataValue | None = None
        for box in domain.boxes:
            self.chosen_boxes[id(restriction)] = box
            try:
                part = self.resolve(reduce(), span)
            finally:
                del self.chosen_boxes[id(restriction)]
            if total is not None and isinstance(part, DataValue) and name in ("+", "*", "min", "max", "&&", "||"):
                combined = self.builder.function if name.isalnum() else self.builder.binary
                part = combined(name, [total, part]) if name.isalnum() else combined(name, total, part)  # type: ignore
            elif total is not None:
                part = None  # type: ignore[assignment]
            if not isinstance(part, DataValue):
                message = f"this reduction by `{name}` has no unions of boxes"
                raise ProgramError("CS0323", span, message, "sum, prod, min, max, all and any of numbers have them")
            total = part
        assert total is not None, "a domain has a box"
        return total

    # Combiners of reductions

    def reduce(
        self, reduction: Reduction, variables: list[BoundVariable], inputs: tuple[Node, ...], type_: ty.Data, span: Span
    ) -> DataValue:
        """One reduce node with the components of `type_`."""
        types = tuple_type(ty.component_types(type_))
        node = self.dag.intern("reduce", types, inputs, (reduction, tuple(variables)))
        self.dag.spans.setdefault(node, span)
        return DataValue(type_, self.dag.components(node))

    def reduce_by_operator(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        """A reduction by a name of REDUCER_NAMES; + and * of records need an operator of the program."""
        if name in ("argmin", "argmax"):
            return self._reduce_to_index(name, variables, value, span)
        if isinstance(value.type, ty.Record):
            return self.reduce_by_function("operator" + name, variables, value, span)
        builder, value = self.builder, self.builder.promoted(value)
        if name == "+" and value.type == ty.BOOL:
            counted = builder.select(value, builder.constant(1, "int"), builder.constant(0, "int"))
            assert counted is not None
            value = counted
        if ty.scalar_type_of(value.type) not in OPERATIONS[name].types():
            allowed = "allowed: " + ", ".join(OPERATIONS[name].types())
            raise ProgramError("CS0311", span, f"{value.type} cannot be reduced by `{name}`", allowed)
        parts = [self.reduce(Reduction(name), variables, (n,), ty.Scalar(n.type), span) for n in value.nodes]
        return DataValue(value.type, tuple(part.node for part in parts))

    def _reduce_to_index(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        value = self.builder.promoted(value)
        if not isinstance(value.type, ty.Scalar) or value.type == ty.BOOL:
            raise ProgramError("CS0311", span, f"{name} compares numbers, but these are {value.type}")
        if len(variables) > 4:
            raise ProgramError("CS0311", span, f"{name} over {len(variables)} variables has no type", "at most 4")
        indices = tuple(map(self.dag.bound_variable, variables))
        type_ = ty.INT if len(variables) == 1 else ty.Vector("int", len(variables))
        return self.reduce(Reduction(name), variables, (value.node, *indices), type_, span)

    def reduce_by_function(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        """A reduction by a function T(T, T) of the program, in order unless it is [Associative]."""
        named = self.program.functions.get(name)
        overloads = [f for f in named if f.is_reduction_operator and f.result_type == value.type]
        if not overloads:
            message = f"{value.type} cannot be reduced by `{name.removeprefix('operator')}`"
            hint = f"a reduction needs a function {value.type}({value.type}, {value.type})"
            raise ProgramError("CS0311", span, message, hint)
        function = self.user_calls.require_device_function(overloads[0], span)
        ordered = "Associative" not in overloads[0].declaration.attributes
        return self.reduce(Reduction(overloads[0].name, function, ordered), variables, value.nodes, value.type, span)

    # Calls that reduce

    def reduce_call(self, name: str, overloads: list[UserFunction], tree: ast.Call) -> Value:
        """A call with one argument that may reduce; if it does not, it is an ordinary call."""
        operand = tree.arguments[0]
        union = self.union_of(tree)
        if union is not None:
            operator = name if overloads else REDUCER_NAMES[name]
            return self.reduce_boxes(operator, *union, tree.span, lambda: self.reduce_call(name, overloads, tree))
        variables, value = self.lower_body(tree, operand)
        unary = [f for f in overloads if len(f.parameter_types) == 1]
        if not variables and self.resolve_overload(unary, [value]) is not None:
            return self._call_overloaded(name, overloads, [value], tree)
        variables, data = self.eta_expand_reduced(variables, value, operand, tree.span)
        if not variables:
            if overloads:
                return self._call_overloaded(name, overloads, [value], tree)
            raise ProgramError(
                "CS0308", tree.span, f"{name} reduces a function, but {operand.span.excerpt} is one {value.type}",
                "its bound variables are reduced or declared elsewhere; `sum(a(i, j), int j)` names the one to reduce",
            )  # fmt: skip
        if not overloads:
            return self.reduce_by_operator(REDUCER_NAMES[name], variables, data, tree.span)
        operators = [f for f in overloads if f.is_reduction_operator]
        fitting = [f for f in operators if self.conversion_cost(data, f.result_type) is not None]
        if not fitting:
            known = "; ".join(f.signature for f in operators)
            raise ProgramError("CS0311", tree.span, f"{name} cannot reduce {data.type}", known)
        data = self._convert(data, fitting[0], 0, tree.span)
        return self.reduce_by_function(name, variables, data, tree.span)

    def _convert(self, value: DataValue, function: UserFunction, position: int, span: Span) -> DataValue:
        type_ = function.parameter_types[position]
        assert isinstance(type_, ty.Data)
        return self.convert_data(value, type_, span)

    def lower_fold(self, tree: ast.Call) -> DataValue:
        """fold(step, start, operand): state = step(state, element) over the reduced variables, in order."""
        if len(tree.arguments) != 3 or not isinstance(tree.arguments[0], ast.Name):
            message = "fold takes a function's name, a start and what is folded"
            raise ProgramError("CS0313", tree.span, message, "`fold(step, start, a(i))`")
        _, start_tree, operand = tree.arguments
        start = self.resolve(self.lower(start_tree), start_tree.span)
        if not isinstance(start, DataValue):
            raise ProgramError("CS0313", start_tree.span, f"a fold starts with a value, but this is {start.type}")
        variables, value = self.lower_reduction_body(tree, operand)
        if not variables:
            raise ProgramError("CS0308", tree.span, "fold reduces a function, but nothing here is reduced")
        chosen = self._fold_step(tree.arguments[0], start, value, tree.span)
        function = self.user_calls.require_device_function(chosen, tree.span)
        start = self._convert(start, chosen, 0, start_tree.span)
        value = self._convert(value, chosen, 1, operand.span)
        return self.reduce(
            Reduction("fold", function, True), variables, start.nodes + value.nodes, function.result_type, tree.span
        )

    def _fold_step(self, step: ast.Name, start: DataValue, value: DataValue, span: Span) -> UserFunction:
        """The overload S step(S, T) that takes the start and the elements."""
        overloads = self.program.functions.get(step.name)
        if not overloads:
            hint = "a fold's step is `S step(S state, T element) { ... }`"
            raise ProgramError("CS0313", step.span, f"`{step.name}` is not a function of this program", hint)
        for function in overloads:
            types = function.parameter_types
            if len(types) == 2 and types[0] == function.result_type:
                costs = (self.conversion_cost(v, t) for v, t in zip((start, value), types, strict=True))
                if None not in costs:
                    return function
        wanted = f"{start.type}({start.type}, {value.type})"
        message = f"{step.name} cannot fold {value.type} from {start.type}: it must be {wanted}"
        known = "known: " + "; ".join(f"{f.result_type} {f.signature}" for f in overloads)
        raise ProgramError("CS0313", span, message, known)


def argument_spans(tree: ast.AstNode) -> Iterator[Span]:
    """The spans of a call's arguments; then, for values that are added and for operands, that of the whole."""
    arguments = tree.arguments if isinstance(tree, ast.Call) else []
    return chain((argument.span for argument in arguments), repeat(tree.span))
