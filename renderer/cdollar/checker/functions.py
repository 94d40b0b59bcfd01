"""Functions as values: abstraction, eta expansion, application at a point, promotion, border modes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from renderer.cdollar.checker.domain_inference import IndexConstraint, unify_ranges
from renderer.cdollar.checker.names import NameResolver
from renderer.cdollar.checker.values import DataValue, FunctionValue, Operand
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, BoundVariable, Dag, Dimension, Node, Range, substitute
from renderer.cdollar.ir.types import INT, INTEGERS, Data, FunctionType, Record, Scalar, component_types

# The bound variables of a promotion by type and position, in order, with the dimensions that each must fit.
SharedVariables = dict[tuple[str, int], tuple[BoundVariable, list[Dimension]]]


def make_function(dag: Dag, variables: list[BoundVariable], value: DataValue) -> FunctionValue:
    """The function of bound variables that yields a value (lambda abstraction)."""
    type_ = FunctionType(value.type, tuple(Scalar(v.type) for v in variables))
    return FunctionValue(type_, dag.function(tuple(variables), value.nodes, type_))


class FunctionBuilder(NameResolver):
    """Builds and applies functions in one body. `promote` and what builds functions need a host body."""

    def from_operation(
        self, names: Iterable[str], types: tuple[Data, ...], operation: Callable[[list[DataValue]], DataValue]
    ) -> FunctionValue:
        """An operation on data as a function over infinite domains."""
        self.body.require_host()
        variables: list[BoundVariable] = []
        values = []
        for name, type_ in zip(names, types, strict=False):
            own = [BoundVariable(name, scalar, INFINITE) for scalar in component_types(type_)]
            variables += own
            values.append(DataValue(type_, tuple(map(self.dag.bound_variable, own))))
        result = operation(values)
        function = FunctionType(result.type, types)
        return FunctionValue(function, self.dag.function(tuple(variables), result.nodes, function))

    def eta_expand(self, function: FunctionValue, span: Span) -> tuple[list[BoundVariable], DataValue]:
        """A function applied to new variables that run over its domain."""
        dimensions = iter(function.domain_with_borders)
        variables: list[BoundVariable] = []

        def variable(type_: str) -> Node:
            variables.append(BoundVariable("ijkmnp"[len(variables) % 6], type_, next(dimensions)))
            return self.dag.bound_variable(variables[-1])

        return variables, self._apply_to_variables(function, variable, span)

    def _apply_to_variables(self, function: FunctionValue, variable: Callable[[str], Node], span: Span) -> DataValue:
        """A function applied to one variable for each component of its parameters."""
        types = function.type.parameters
        arguments = [DataValue(type_, tuple(map(variable, component_types(type_)))) for type_ in types]
        return self.access(function, arguments, span)

    # Application

    def apply_at(
        self, function: FunctionValue, arguments: list[DataValue], span: Span, free: frozenset[BoundVariable]
    ) -> DataValue:
        """A function at a point. Each index but the `free` variables constrains the inference of domains."""
        indices = [node for argument in arguments for node in argument.nodes]
        for position, index in enumerate(indices):
            range_ = function.domain[position]
            is_free = index.op == "variable" and index.attribute in free
            if not is_free and index.type in INTEGERS and range_ is not NOT_INFERRED:
                has_border = bool(function.borders and function.borders[position])
                constraint = IndexConstraint(index, range_, span, self.body.guard_depth > 0, has_border)
                self.program.inference.add_constraint(constraint)
        return self.access(function, arguments, span)

    def access(self, function: FunctionValue, arguments: list[DataValue], span: Span) -> DataValue:
        """A function at a point, without a constraint."""
        indices = tuple(node for argument in arguments for node in argument.nodes)
        borders = function.borders or (None,) * len(indices)
        if function.node.free_variables:
            return self._beta_reduce(function, indices, borders)
        node = self.dag.access(function.node, indices, borders)
        self.dag.spans.setdefault(node, span)
        return DataValue(function.type.result, self.dag.components(node))

    def _beta_reduce(
        self, function: FunctionValue, indices: tuple[Node, ...], borders: tuple[str | None, ...]
    ) -> DataValue:
        """A function whose body uses outer bound variables is inlined, the indices replacing its parameters."""
        outside: list[Node] = []
        inside = [
            self._apply_border_mode(index, border, range_, outside) if border and isinstance(range_, Range) else index
            for index, border, range_ in zip(indices, borders, function.domain, strict=True)
        ]
        replacement = dict(zip(function.node.attribute, inside, strict=True))
        value = DataValue(function.type.result, substitute(self.dag, function.node.inputs, replacement))
        if not outside:
            return value
        result = self.builder.select(self.builder.chain("||", tuple(outside)), self.builder.zero(value.type), value)
        assert result is not None
        return result

    def _apply_border_mode(self, index: Node, border: str, range_: Range, outside: list[Node]) -> Node:
        """The index that the border mode reads instead; for `zero`, adds where it is outside to `outside`."""
        type_ = index.type

        def op(name: str, a: Node, b: Node) -> Node:
            return self.builder.apply(name, type_, a, b)

        def runtime(number: int) -> Node:
            return self.dag.runtime_scalar(number, type_, "border")

        def modulo(a: Node, b: Node) -> Node:
            return op("%", op("+", op("%", a, b), b), b)

        low, high, size = runtime(range_.low), runtime(range_.high - 1), runtime(range_.size)
        offset = op("-", index, low)
        if border == "wrap":
            return op("+", modulo(offset, size), low)
        if border == "mirror":
            last = runtime(2 * range_.size - 1)
            offset = modulo(offset, runtime(2 * range_.size))
            return op("+", op("min", offset, op("-", last, offset)), low)
        if border == "zero":
            tests = (self.builder.apply(name, type_, index, end) for name, end in (("<", low), (">", high)))
            outside.append(self.builder.chain("||", tuple(tests)).node)
        return op("min", op("max", index, low), high)

    def with_border_mode(self, function: FunctionValue, tree: ast.MemberAccess) -> FunctionValue:
        """`f.clamp`, `f.wrap`, `f.mirror`, `f.zero`; raises CS0309 where the mode does not fit."""
        if any(p != INT for p in function.type.parameters):
            message = f"a border mode needs int indices, but this is {function.type}"
            raise ProgramError("CS0309", tree.name_span, message)
        if INFINITE in function.domain_with_borders:
            dimension = ordinal(function.domain_with_borders.index(INFINITE))
            message = f"the {dimension} dimension of {tree.subject.span.excerpt} is infinite: it has no border"
            raise ProgramError("CS0309", tree.name_span, message)
        result = function.type.result
        if tree.name == "zero" and isinstance(result, Record):
            raise ProgramError("CS0309", tree.name_span, f"{result} has no zero", "use clamp, wrap or mirror")
        borders = (tree.name,) * len(function.type.parameters)
        return FunctionValue(function.type.as_function_type, function.node, function.fixed_domain, borders)

    # Promotion

    def promote(self, values: list[Operand], operation: Callable[[list], DataValue], span: Span) -> Operand:
        """Lifts `operation(data) -> data` to functions: parameters of equal type are unified, others stay separate."""
        if not any(isinstance(v, FunctionValue) for v in values):
            return operation(values)
        self.body.require_host()
        shared: SharedVariables = {}
        data = [self._eta_expand_shared(v, shared, span) if isinstance(v, FunctionValue) else v for v in values]
        for variable, dimensions in shared.values():
            variable.range = unify_ranges(variable.name, dimensions, span)
        return make_function(self.dag, [variable for variable, _ in shared.values()], operation(data))

    def _eta_expand_shared(self, function: FunctionValue, shared: SharedVariables, span: Span) -> DataValue:
        """A function applied to the variables of a promotion: the k-th parameter of each type is one of them."""
        counts: dict[str, int] = {}
        dimensions = iter(function.domain_with_borders)

        def variable(type_: str) -> Node:
            dimension = next(dimensions)
            if isinstance(dimension, Range) and not dimension.provenance:
                dimension = replace(dimension, provenance=span.provenance)
            position = counts[type_] = counts.get(type_, -1) + 1
            if (type_, position) not in shared:
                name = ("ijkmnp" if type_ in INTEGERS else "xyzuvw")[position % 6]
                shared[type_, position] = BoundVariable(name, type_), []
            bound, dimensions_to_fit = shared[type_, position]
            dimensions_to_fit.append(INFINITE if dimension is NOT_INFERRED else dimension)
            return self.dag.bound_variable(bound)

        return self._apply_to_variables(function, variable, span)
