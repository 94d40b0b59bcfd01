"""Reductions of C$: bodies over bound variables, restrictions, joins by operators or functions, folds."""

from __future__ import annotations

from renderer.cdollar.checker.values import (
    BlankValue,
    DataValue,
    FunctionValue,
    NotDeviceCode,
    Scope,
    UserFunction,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, BoundVariable, Node, Reduction, tuple_type
from renderer.cdollar.ir.operations import REDUCER_NAMES, REDUCERS
from renderer.cdollar.ir.types import BOOL, INT, Record, Scalar, Type, Vector, component_types, scalar_type_of


class Reductions:
    """What Checker knows of reductions; uses its scope, inference_stack and arithmetic."""

    # Reductions

    def reduction(self, tree: ast.Call, name: str, variables: list[BoundVariable], value: DataValue) -> DataValue:
        """A reduction by a named operation over the variables that live only inside of it."""
        if name not in ("argmin", "argmax"):
            return self.join(name, variables, value, tree)
        if not isinstance(value.type, Scalar) or value.type.name == "bool":
            raise ProgramError("CS0311", tree.span, f"{name} compares numbers, but these are {value.type}")
        if len(variables) > 4:
            raise ProgramError("CS0311", tree.span, f"{name} over {len(variables)} variables has no type", "at most 4")
        indices = tuple(self.dag.bound_variable(v) for v in variables)
        type_ = tuple_type(("int",) * len(variables))
        node = self.dag.intern("reduce", type_, (value.node, *indices), (Reduction(name), tuple(variables)))
        self.dag.spans.setdefault(node, tree.span)
        result = INT if len(variables) == 1 else Vector("int", len(variables))
        return DataValue(result, tuple(self.dag.component(node, k) for k in range(len(variables))))

    def reduced_body(self, tree: ast.Unary | ast.Call, body: ast.AstNode) -> tuple[list[BoundVariable], DataValue]:
        """The variables that a reduction reduces and the value under it; of a function, all its dimensions."""
        variables, value = self.raw_body(tree, body)
        return self.opened_for_reduction(variables, value, body, tree.span)

    def raw_body(self, tree: ast.Unary | ast.Call, body: ast.AstNode) -> tuple[list[BoundVariable], Value]:
        """The variables that live only under a reduction and the value under it, checked in a scope of its own."""
        names = (
            self.compilation.inference_stack[-1].owners.get(id(tree), []) if self.compilation.inference_stack else []
        )
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            variables = [v for r in tree.restrictions for v in self.restricted(r)]
            if self.scalar and (names or variables):
                raise NotDeviceCode
            variables += [self.new_variable(name, tree.span, True, self.first_use(name, body), None) for name in names]
            return variables, self.settled(self.eval(body), body.span)
        finally:
            self.scope = outer

    def opened_for_reduction(
        self, variables: list[BoundVariable], value: Value, body: ast.AstNode, span: Span
    ) -> tuple[list[BoundVariable], DataValue]:
        if not isinstance(value, FunctionValue):
            return variables, value
        if self.scalar:
            raise NotDeviceCode
        free, data = self.opened(value, body.span)
        for variable in free:
            variable.reduced = True
            if variable.range is INFINITE:
                raise ProgramError(
                    "CS0304",
                    span,
                    f"{body.span.short} is reduced, but its domain is infinite",
                    "restrict its variables: `var f(i : 0..n) = ...`",
                )
        return variables + free, data

    def restricted(self, restriction: ast.Restriction) -> list[BoundVariable]:
        """`l : 0..n`, `int l`, `(i, j) : f` in a reduction: new variables."""
        written = self.compilation.type_of(restriction.type) if restriction.type is not None else None
        if len(restriction.names) == 1:
            name, span = restriction.names[0]
            self.not_twice(name, span)
            return [self.new_variable(name, restriction.span, True, written, restriction.domain)]
        found = []
        ranges = self.ranges_of(restriction.domain, len(restriction.names))
        for (name, span), range_ in zip(restriction.names, ranges, strict=True):
            self.not_twice(name, span)
            variable = self.new_variable(name, restriction.span, True, written, None)
            variable.range = range_ if range_ is not INFINITE else NOT_INFERRED
            self.compilation.inference_stack[-1].explicit[variable] = restriction.span
            found.append(variable)
        return found

    def not_twice(self, name: str, span: Span) -> None:
        if self.scope.find(name) is not None:
            raise ProgramError(
                "CS0312", span, f"`{name}` is already declared, so this reduction cannot reduce it", "use another name"
            )

    def join(self, name: str, variables: list[BoundVariable], value: DataValue, tree: ast.AstNode) -> DataValue:
        if isinstance(value.type, Record):
            return self.join_by_user("operator" + name, variables, value, tree)
        if name == "+" and value.type == BOOL:
            one, zero = self.arithmetic.number(1, "int"), self.arithmetic.number(0, "int")
            value = self.arithmetic.select(value, one, zero)
        if scalar_type_of(value.type) not in REDUCERS[name].types:
            raise ProgramError(
                "CS0311",
                tree.span,
                f"{value.type} cannot be reduced by `{name}`",
                "allowed: " + ", ".join(REDUCERS[name].types),
            )
        nodes = tuple(self.dag.intern("reduce", n.type, (n,), (Reduction(name), tuple(variables))) for n in value.nodes)
        for node in nodes:
            self.dag.spans.setdefault(node, tree.span)
        return DataValue(value.type, nodes)

    def join_by_user(
        self, family_name: str, variables: list[BoundVariable], value: DataValue, tree: ast.AstNode
    ) -> DataValue:
        family = [
            f for f in self.compilation.overloads.get(family_name, []) if self.joins(f) and f.result_type == value.type
        ]
        if not family:
            shown = family_name.removeprefix("operator")
            raise ProgramError(
                "CS0311",
                tree.span,
                f"{value.type} cannot be reduced by `{shown}`",
                f"a reduction needs a function {value.type}({value.type}, {value.type})",
            )
        function = self.compilation.scalar_function(family[0], tree.span)
        ordered = "Associative" not in family[0].declaration.attributes
        reduction = Reduction(family[0].name, function, ordered)
        return self.reduce_components(reduction, variables, value.nodes, value.type, tree.span)

    def reduce_components(
        self, reduction: Reduction, variables: list[BoundVariable], inputs: tuple[Node, ...], type_: Type, span: Span
    ) -> DataValue:
        parts = component_types(type_)
        node = self.dag.intern("reduce", tuple_type(parts), inputs, (reduction, tuple(variables)))
        self.dag.spans.setdefault(node, span)
        return DataValue(type_, tuple(self.dag.component(node, k) for k in range(len(parts))))

    def reduce_family(self, name: str, family: list[UserFunction], tree: ast.Call) -> Value:
        """A call with one argument that may reduce: below ordinary and user overloads, above currying."""
        body = tree.arguments[0]
        if isinstance(body, ast.Blank):
            return self.call_overloaded(name, family, [BlankValue()], tree)
        variables, value = self.raw_body(tree, body)
        if not variables and self.choose([f for f in family if len(f.parameter_types) == 1], [value]) is not None:
            return self.call_overloaded(name, family, [value], tree)
        variables, data = self.opened_for_reduction(variables, value, body, tree.span)
        if not variables:
            if family:
                return self.call_overloaded(name, family, [value], tree)
            raise ProgramError(
                "CS0308", tree.span, f"{name} reduces a function, but {body.span.short} is one {value.type}",
                "its bound variables are reduced or declared elsewhere; `sum(a(i, j), int j)` names the one to reduce",
            )  # fmt: skip
        if not family:
            return self.reduction(tree, REDUCER_NAMES[name], variables, data)
        joining = [f for f in family if self.joins(f)]
        fitting = [f for f in joining if self.fit(data, f.result_type, False) is not None]
        if not fitting:
            raise ProgramError(
                "CS0311", tree.span, f"{name} cannot reduce {data.type}", "; ".join(f.signature for f in joining)
            )
        return self.join_by_user(name, variables, self.convert(data, fitting[0].result_type, tree.span), tree)

    def fold(self, tree: ast.Call) -> DataValue:
        """fold(step, start, body): state = step(state, element) over the reduced variables, in order."""
        if len(tree.arguments) != 3 or not isinstance(tree.arguments[0], ast.Name):
            raise ProgramError(
                "CS0313",
                tree.span,
                "fold takes a function's name, a start and what is folded",
                "`fold(step, start, a(i))`",
            )
        name = tree.arguments[0].name
        start = self.convert_start(tree)
        variables, value = self.reduced_body(tree, tree.arguments[2])
        if not variables:
            raise ProgramError("CS0308", tree.span, "fold reduces a function, but nothing here is reduced")
        family = self.compilation.overloads.get(name)
        if not family:
            raise ProgramError(
                "CS0313",
                tree.arguments[0].span,
                f"`{name}` is no function of this program",
                "a fold's step is `S step(S state, T element) { ... }`",
            )
        fitting = [
            f
            for f in family
            if len(f.parameter_types) == 2
            and f.parameter_types[0] == f.result_type
            and self.fit(value, f.parameter_types[1], False) is not None
        ]
        fitting = [f for f in fitting if self.fit(start, f.result_type, False) is not None]
        if not fitting:
            raise ProgramError(
                "CS0313",
                tree.span,
                f"{name} cannot fold {value.type} from {start.type}: it must be "
                f"{start.type}({start.type}, {value.type})",
                "known: " + "; ".join(f"{f.result_type} {f.signature}" for f in family),
            )
        chosen = fitting[0]
        function = self.compilation.scalar_function(chosen, tree.span)
        start = self.convert(start, chosen.result_type, tree.arguments[1].span)
        value = self.convert(value, chosen.parameter_types[1], tree.arguments[2].span)
        reduction = Reduction("fold", function, True)
        return self.reduce_components(reduction, variables, start.nodes + value.nodes, chosen.result_type, tree.span)

    def convert_start(self, tree: ast.Call) -> DataValue:
        start = self.settled(self.eval(tree.arguments[1]), tree.arguments[1].span)
        if not isinstance(start, DataValue):
            raise ProgramError(
                "CS0313", tree.arguments[1].span, f"a fold starts with a value, but this is {start.type}"
            )
        return start
