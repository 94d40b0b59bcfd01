"""Reductions: bodies over bound variables, combined by an operator or by a function of the program; folds."""

from __future__ import annotations

from collections.abc import Callable

from renderer.cdollar.checker.domains import DomainLowering
from renderer.cdollar.checker.overload_resolution import BodyTools
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand, UserFunction, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, BoundVariable, Node, Reduction, tuple_type
from renderer.cdollar.ir.operations import REDUCER_NAMES, REDUCERS
from renderer.cdollar.ir.types import BOOL, INT, Data, Record, Scalar, Vector, component_types, scalar_type_of


class ReductionLowering:
    """Lowers reductions of one body; `lower` lowers an expression of the same body."""

    def __init__(self, tools: BodyTools, domains: DomainLowering, lower: Callable[[ast.AstNode], Value]):
        self.program, self.body, self.names, self.functions = tools.program, tools.body, tools.names, tools.functions
        self.resolver, self.domains, self.user_calls, self.lower = tools.resolver, domains, tools.user_calls, lower

    # Bodies

    def lower_body(self, tree: ast.Unary | ast.Call, operand: ast.AstNode) -> tuple[list[BoundVariable], Operand]:
        """The variables that a reduction binds, and the value of its operand, lowered in a scope of its own."""
        context = self.program.inference.current
        names = context.binders.get(id(tree), []) if context is not None else []
        with self.body.block():
            variables = [v for r in tree.restrictions for v in self.domains.reduced_variables(r)]
            if names or variables:
                self.body.require_host()
            for name in names:
                type_ = self.names.type_from_first_use(name, operand)
                variables.append(self.domains.new_variable(name, tree.span, True, type_, None))
            return variables, self.resolver.resolve(self.lower(operand), operand.span)

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
        added, data = self.functions.eta_expand(value, operand.span)
        for variable in added:
            variable.reduced = True
            if variable.range is INFINITE:
                message = f"{operand.span.excerpt} is reduced, but its domain is infinite"
                raise ProgramError("CS0304", span, message, "restrict its variables: `var f(i : 0..n) = ...`")
        return variables + added, data

    # Combiners

    def reduce(
        self, reduction: Reduction, variables: list[BoundVariable], inputs: tuple[Node, ...], type_: Data, span: Span
    ) -> DataValue:
        """One reduce node with the components of `type_`."""
        types = component_types(type_)
        dag = self.program.dag
        node = dag.intern("reduce", tuple_type(types), inputs, (reduction, tuple(variables)))
        dag.spans.setdefault(node, span)
        return DataValue(type_, tuple(dag.component(node, k) for k in range(len(types))))

    def reduce_by_operator(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        """A reduction by a name of REDUCERS; + and * of records need an operator of the program."""
        if name in ("argmin", "argmax"):
            return self._reduce_to_index(name, variables, value, span)
        if isinstance(value.type, Record):
            return self.reduce_by_function("operator" + name, variables, value, span)
        builder = self.program.builder
        if name == "+" and value.type == BOOL:
            counted = builder.select(value, builder.constant(1, "int"), builder.constant(0, "int"))
            assert counted is not None
            value = counted
        if scalar_type_of(value.type) not in REDUCERS[name].types:
            allowed = "allowed: " + ", ".join(REDUCERS[name].types)
            raise ProgramError("CS0311", span, f"{value.type} cannot be reduced by `{name}`", allowed)
        parts = [self.reduce(Reduction(name), variables, (n,), Scalar(n.type), span) for n in value.nodes]
        return DataValue(value.type, tuple(part.node for part in parts))

    def _reduce_to_index(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        if not isinstance(value.type, Scalar) or value.type == BOOL:
            raise ProgramError("CS0311", span, f"{name} compares numbers, but these are {value.type}")
        if len(variables) > 4:
            raise ProgramError("CS0311", span, f"{name} over {len(variables)} variables has no type", "at most 4")
        indices = tuple(map(self.program.dag.bound_variable, variables))
        type_ = INT if len(variables) == 1 else Vector("int", len(variables))
        return self.reduce(Reduction(name), variables, (value.node, *indices), type_, span)

    def reduce_by_function(self, name: str, variables: list[BoundVariable], value: DataValue, span: Span) -> DataValue:
        """A reduction by a function T(T, T) of the program, in order unless it is [Associative]."""
        overloads = [
            f for f in self.program.functions.get(name) if f.is_reduction_operator and f.result_type == value.type
        ]
        if not overloads:
            message = f"{value.type} cannot be reduced by `{name.removeprefix('operator')}`"
            hint = f"a reduction needs a function {value.type}({value.type}, {value.type})"
            raise ProgramError("CS0311", span, message, hint)
        function = self.user_calls.require_device_function(overloads[0], span)
        ordered = "Associative" not in overloads[0].declaration.attributes
        return self.reduce(Reduction(overloads[0].name, function, ordered), variables, value.nodes, value.type, span)

    # Expressions

    def reduce_call(
        self, name: str, overloads: list[UserFunction], tree: ast.Call, call: Callable[[list[Value]], Value]
    ) -> Value:
        """A call with one argument that may reduce; `call` makes it an ordinary call of the argument's value."""
        operand = tree.arguments[0]
        variables, value = self.lower_body(tree, operand)
        unary = [f for f in overloads if len(f.parameter_types) == 1]
        if not variables and self.resolver.resolve_overload(unary, [value]) is not None:
            return call([value])
        variables, data = self.eta_expand_reduced(variables, value, operand, tree.span)
        if not variables:
            if overloads:
                return call([value])
            raise ProgramError(
                "CS0308", tree.span, f"{name} reduces a function, but {operand.span.excerpt} is one {value.type}",
                "its bound variables are reduced or declared elsewhere; `sum(a(i, j), int j)` names the one to reduce",
            )  # fmt: skip
        if not overloads:
            return self.reduce_by_operator(REDUCER_NAMES[name], variables, data, tree.span)
        operators = [f for f in overloads if f.is_reduction_operator]
        fitting = [f for f in operators if self.resolver.conversion_cost(data, f.result_type) is not None]
        if not fitting:
            known = "; ".join(f.signature for f in operators)
            raise ProgramError("CS0311", tree.span, f"{name} cannot reduce {data.type}", known)
        data = self._convert(data, fitting[0], 0, tree.span)
        return self.reduce_by_function(name, variables, data, tree.span)

    def _convert(self, value: DataValue, function: UserFunction, position: int, span: Span) -> DataValue:
        type_ = function.parameter_types[position]
        assert isinstance(type_, Data)
        return self.resolver.convert_data(value, type_, span)

    def lower_fold(self, tree: ast.Call) -> DataValue:
        """fold(step, start, operand): state = step(state, element) over the reduced variables, in order."""
        if len(tree.arguments) != 3 or not isinstance(tree.arguments[0], ast.Name):
            message = "fold takes a function's name, a start and what is folded"
            raise ProgramError("CS0313", tree.span, message, "`fold(step, start, a(i))`")
        _, start_tree, operand = tree.arguments
        start = self.resolver.resolve(self.lower(start_tree), start_tree.span)
        if not isinstance(start, DataValue):
            message = f"a fold starts with a value, but this is {start.type}"
            raise ProgramError("CS0313", start_tree.span, message)
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
                costs = (self.resolver.conversion_cost(v, t) for v, t in zip((start, value), types, strict=True))
                if None not in costs:
                    return function
        wanted = f"{start.type}({start.type}, {value.type})"
        message = f"{step.name} cannot fold {value.type} from {start.type}: it must be {wanted}"
        known = "known: " + "; ".join(f"{f.result_type} {f.signature}" for f in overloads)
        raise ProgramError("CS0313", span, message, known)
