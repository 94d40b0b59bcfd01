"""Overloads of user functions: exact, by promotion of functions, by widening; and families of functions as values."""

from __future__ import annotations

from renderer.cdollar.checker.builtins import FUNCTIONS
from renderer.cdollar.checker.values import (
    BlankValue,
    DataValue,
    FunctionValue,
    NotDeviceCode,
    OverloadSet,
    Scope,
    UserFunction,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, BoundVariable
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import FLOAT, FunctionType, Scalar, Type, Vector, component_types, is_data, widening


class Overloads:
    """What Checker knows of functions that have several bodies; uses its scope, inference_stack and arithmetic."""

    def call_family(self, name: str, tree: ast.Call) -> Value:
        family = self.compilation.overloads.get(name, [])
        if name == "fold" and not family:
            return self.fold(tree)
        if self.may_reduce(tree):
            return self.reduce_family(name, family, tree)
        if name in self.special and not family:
            return self.special[name](self, tree)
        expected = family[0].parameter_types if len(family) == 1 else ()
        values = []
        for position, argument in enumerate(tree.arguments):
            values.append(self.argument(argument, expected[position] if position < len(expected) else None))
        return self.call_overloaded(name, family, values, tree)

    def call_overloaded(self, name: str, family: list[UserFunction], values: list, tree: ast.Call) -> Value:
        plain = [v for v in values if not isinstance(v, BlankValue)]
        blanks = len(plain) != len(values)
        chosen = None if blanks else self.choose(family, values)
        if chosen is not None and (
            name not in OPERATIONS or self.exact(chosen, values) or not self.builtin_fits(name, values)
        ):
            return self.call_user(chosen, values, tree.span, [a.span for a in tree.arguments])
        if name in FUNCTIONS and not blanks and all(isinstance(v, DataValue) for v in values):
            found = self.builtin(name, values, tree)
            if found is not None:
                return found
        completed = self.completed(family, values) if not blanks else None
        if completed is not None:
            return self.promote_call(*completed, tree)
        missing = [
            f
            for f in family
            if len(values) < len(f.parameter_types) or blanks and len(values) == len(f.parameter_types)
        ]
        if missing and not any(len(f.parameter_types) == len(values) for f in family) or blanks and missing:
            return self.curried_family(missing[0], values, tree)
        settled = [
            self.settled(v, a.span) if not isinstance(v, BlankValue) else v
            for v, a in zip(values, tree.arguments, strict=True)
        ]
        promotable = self.choose(family, settled, promote=True)
        if promotable is not None:
            return self.promote_call(promotable, settled, tree)
        if name in FUNCTIONS and not blanks and any(isinstance(v, FunctionValue) for v in settled):
            return self.promoted(settled, lambda v: self.builtin_or_fail(name, v, tree), tree.span)
        return self.no_overload(name, family, values, tree)

    def completed(self, family: list[UserFunction], values: list) -> tuple[UserFunction, list] | None:
        """A function whose last parameters have defaults, and the values with these."""
        for function in family:
            rest = function.declaration.parameters[len(values) :]
            if not rest or any(parameter.default is None for parameter in rest):
                continue
            checker = type(self)(self.compilation, Scope(), self.scalar)
            full = values + [checker.root(parameter.default) for parameter in rest]
            if self.choose([function], full, promote=True) is not None:
                return function, full
        return None

    def builtin_fits(self, name: str, values: list) -> bool:
        return all(isinstance(v, DataValue) for v in values) and self.arithmetic.function(name, values) is not None

    def exact(self, function: UserFunction, values: list) -> bool:
        return all(
            isinstance(v, DataValue) and v.type == t for v, t in zip(values, function.parameter_types, strict=True)
        )

    def promote_call(self, function: UserFunction, values: list, tree: ast.Call) -> Value:
        """Functions that fill data parameters are lifted; functional parameters keep what they are given."""
        spans = [a.span for a in tree.arguments]
        lifted = [v for v, t in zip(values, function.parameter_types, strict=True) if not isinstance(t, FunctionType)]

        def work(data: list[DataValue]) -> DataValue:
            rest = iter(data)
            full = [
                v if isinstance(t, FunctionType) else next(rest)
                for v, t in zip(values, function.parameter_types, strict=True)
            ]
            found = self.call_user(function, full, tree.span, spans)
            if isinstance(found, FunctionValue):
                raise ProgramError("CS0410", tree.span, f"{function.name} returns a function: it cannot be promoted")
            return found

        return self.promoted(lifted, work, tree.span)

    def curried_family(self, function: UserFunction, values: list, tree: ast.Call) -> Value:
        if any(isinstance(t, FunctionType) for t in function.parameter_types):
            return self.no_overload(function.name, [function], values, tree)
        whole = self.function_value(function)
        return self.apply(whole, values, tree)

    def choose(self, family: list[UserFunction], values: list, promote: bool = False) -> UserFunction | None:
        """The overload whose parameters the values fill with the fewest conversions."""
        best, best_cost = None, None
        for function in family:
            if len(function.parameter_types) != len(values):
                continue
            costs = [
                self.fit(value, type_, promote) for value, type_ in zip(values, function.parameter_types, strict=True)
            ]
            if any(cost is None for cost in costs):
                continue
            if best is None or sum(costs) < best_cost:
                best, best_cost = function, sum(costs)
        return best

    def fit(self, value: Value, target: Type, promote: bool) -> int | None:
        """How far a value is from a parameter's type; None if it does not fit."""
        if isinstance(value, BlankValue):
            return None
        if isinstance(target, FunctionType):
            if isinstance(value, OverloadSet):
                return 1 if self.family_member(value, target) is not None else None
            if not isinstance(value, FunctionValue) or value.type.parameters != target.parameters:
                return None
            steps = widening(value.type.result, target.result)
            return None if steps is None else steps + (target.is_array and not value.type.is_array)
        if isinstance(value, OverloadSet):
            return None
        if isinstance(value, FunctionValue):
            if not promote:
                return None
            steps = widening(value.type.result, target)
            return None if steps is None else 10 + steps
        if not isinstance(value, DataValue):
            return None
        steps = widening(value.type, target)
        if steps is None and self.literal_fits(value, target):
            steps = 1
        return steps

    def literal_fits(self, value: DataValue, target: Type) -> bool:
        if not (value.is_literal and isinstance(value.type, Scalar) and isinstance(target, Scalar)):
            return False
        return value.type.name == "int" and target.name == "uint" and value.node.attribute.number >= 0

    def no_overload(self, name: str, family: list[UserFunction], values: list, tree: ast.Call):
        given = ", ".join("(blank)" if isinstance(v, BlankValue) else self.describe(v) for v in values)
        known = [f.signature for f in family]
        if not family and name in FUNCTIONS:
            raise ProgramError("CS0411", tree.span, f"{name} does not take ({given})", FUNCTIONS[name])
        if len(known) == 1:
            message, hint = f"{known[0]} does not take ({given})", self.misfit(family[0], values)
        else:
            message, hint = f"no overload of {name} takes ({given})", "known: " + "; ".join(known[:6])
        raise ProgramError("CS0411", tree.span, message, hint)

    def misfit(self, function: UserFunction, values: list) -> str:
        if len(function.parameter_types) != len(values):
            return f"it takes {len(function.parameter_types)} arguments, {len(values)} are given"
        for name, type_, value in zip(function.parameter_names, function.parameter_types, values, strict=True):
            if self.fit(value, type_, True) is None and not isinstance(value, BlankValue):
                return f"`{name}` is {type_}, but {self.describe(value)} is given"
        return ""

    def describe(self, value: Value) -> str:
        return f"function {value.name}" if isinstance(value, OverloadSet) else str(value.type)

    def call_user(self, function: UserFunction, values: list, span: Span, spans: list[Span] | None = None) -> Value:
        spans = (spans or []) + [span] * len(values)
        converted = [self.convert(v, t, s) for v, t, s in zip(values, function.parameter_types, spans, strict=False)]
        return self.compilation.call(self, function, converted, span)

    def function_value(self, function: UserFunction) -> FunctionValue:
        """A user's function of data as a value: a function of variables without end."""
        if self.scalar:
            raise NotDeviceCode
        variables, values = [], []
        for name, type_ in zip(function.parameter_names, function.parameter_types, strict=True):
            parts = [BoundVariable(name, base, INFINITE) for base in component_types(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound_variable, parts))))
        result = self.compilation.call(self, function, values, function.declaration.name_span)
        type_ = FunctionType(result.type, function.parameter_types)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))

    def family_member(self, value: OverloadSet, expected: FunctionType) -> UserFunction | str | None:
        """The overload that is a function of the expected type."""
        for function in self.compilation.overloads.get(value.name, []):
            if (
                function.parameter_types == expected.parameters
                and widening(function.result_type, expected.result) is not None
            ):
                return function
        if value.name in OPERATIONS and all(isinstance(p, (Scalar, Vector)) for p in expected.parameters):
            if len(OPERATIONS[value.name].parameters) == len(expected.parameters):
                return value.name
        return None

    def family_as_function(self, value: OverloadSet, expected: FunctionType | None, span: Span) -> FunctionValue:
        if self.scalar:
            raise NotDeviceCode
        family = self.compilation.overloads.get(value.name, [])
        if expected is not None:
            member = self.family_member(value, expected)
            if member is None:
                raise ProgramError("CS0412", span, f"no overload of {value.name} is {expected}")
            if isinstance(member, UserFunction):
                return self.function_value(member)
            return self.builtin_function_value(value.name, expected.parameters)
        if len(family) == 1 and all(is_data(t) for t in family[0].parameter_types):
            return self.function_value(family[0])
        if not family and value.name in OPERATIONS:
            return self.builtin_function_value(value.name, (FLOAT,) * len(OPERATIONS[value.name].parameters))
        raise ProgramError(
            "CS0412",
            span,
            f"the function {value.name} cannot stand alone here: it has several overloads or takes functions",
            "call it, or cast it: `(float(float)) f`",
        )

    def builtin_function_value(self, name: str, parameters: tuple[Type, ...]) -> FunctionValue:
        variables, values = [], []
        for position, type_ in enumerate(parameters):
            parts = [BoundVariable("xyzw"[position], base, INFINITE) for base in component_types(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound_variable, parts))))
        result = self.arithmetic.function(name, values)
        type_ = FunctionType(result.type, parameters)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))
