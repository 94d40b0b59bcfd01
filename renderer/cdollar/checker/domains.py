"""Bound variables, the ranges that restrict them, and `domain`, `size`, `low`, `high`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from renderer.cdollar.checker.domain_algebra import count
from renderer.cdollar.checker.functions import make_function
from renderer.cdollar.checker.gradients import lower_gradient
from renderer.cdollar.checker.overload_resolution import OverloadResolver
from renderer.cdollar.checker.primitives import SIGNATURES, lower_primitive
from renderer.cdollar.checker.scopes import NameRestriction, Variable
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, UNKNOWN, BoundVariable, Dimension, Range
from renderer.cdollar.ir.types import INT, PROMOTED, UINT, FunctionType, Scalar, Type

MEMBERS = {"lo": "low", "low": "low", "hi": "high", "high": "high", "size": "size", "Length": "size"}


class DomainLowering(OverloadResolver, ABC):
    """Lowers whole expressions, what introduces bound variables, and what asks for domains."""

    # Whole expressions

    @abstractmethod
    def lower(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """An expression that is part of a whole one; `expected` is the type that a lambda takes on."""

    def lower_expression(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """A whole expression: all its bound variables are reduced inside of it."""
        with self.program.inference.context() as context:
            self.assign_binders(tree, context, [])
            return self.lower(tree, expected)

    def lower_as(self, tree: ast.AstNode, type_: Type) -> Operand:
        """A whole expression, converted to a type."""
        return self.convert(self.lower_expression(tree, type_), type_, tree.span)

    def lower_operand(self, tree: ast.AstNode) -> Operand:
        """A whole expression that is data or a function."""
        return self.resolve(self.lower_expression(tree), tree.span)

    def lower_restriction(self, tree: ast.Restriction) -> list[NameRestriction]:
        """What a restriction that is a statement says about each of its names."""
        with self.program.inference.context() as context:
            if tree.domain is not None:
                self.assign_binders(tree.domain, context, [])
            return self._declared(tree.type, tree.domain, tree.span, len(tree.names))

    def _operand(self, tree: ast.AstNode) -> Operand:
        """Data or a function."""
        return self.resolve(self.lower(tree), tree.span)

    # Ranges

    def host_int(self, tree: ast.AstNode) -> int | None:
        """An int or uint that is known while the program is built; None if it depends on abstract arguments."""
        value = self._operand(tree)
        if not isinstance(value, DataValue) or value.type not in (INT, UINT):
            message = f"an end of a range is int, but {tree.span.excerpt} is {value.type}"
            raise ProgramError("CS0314", tree.span, message)
        self.body.require_host()
        if not value.is_closed:
            raise ProgramError(
                "CS0315", tree.span,
                f"the end of a range cannot depend on `{value.variable_names()}`: domains are boxes",
                "reduce over the bounding box and mask: `i <= j ? a(i) : 0`",
            )  # fmt: skip
        number = self.program.host.node_number(value.node)
        return None if number is None else int(number)

    def _lower_RangeExpression(self, tree: ast.RangeExpression) -> DomainValue:
        """`low..high`."""
        low, high = self.host_int(tree.low), self.host_int(tree.high)
        if low is None or high is None:
            return DomainValue((UNKNOWN,))
        return DomainValue((Range(low, max(low, high), False, tree.span.provenance),))

    def ranges_of(self, tree: ast.AstNode, rank: int, box: tuple[Dimension, ...] | None = None) -> list[Dimension]:
        """The ranges that a restriction's right side gives: a range, a function's domain, a box of a union."""
        span, value = tree.span, self.lower(tree) if box is None else DomainValue(box)
        if isinstance(value, OverloadSet):
            value = self.resolve(value, span)
        if isinstance(value, FunctionValue):
            value = DomainValue(value.domain)
        if not isinstance(value, DomainValue):
            message = f"a restriction needs a range or a function, but {span.excerpt} is {value.type}"
            raise ProgramError("CS0314", span, message, "`0..n`, `f` or `domain(f)[0]`")
        if len(value.ranges) != rank:
            message = f"{span.excerpt} has {len(value.ranges)} dimensions, but restricts {rank}"
            raise ProgramError("CS0314", span, message, "`(i, j) : f`, or `i : domain(f)[0]`")
        if value.more:
            message = f"{span.excerpt} is a union of {len(value.boxes)} boxes, but a function's domain is one box"
            raise ProgramError("CS0323", span, message, "unions restrict reductions: `sum(a(i), i : (0..3) | (5..9))`")
        if INFINITE in value.ranges:
            raise ProgramError("CS0314", span, f"{span.excerpt} has an infinite domain: it restricts nothing")
        return [replace(r, provenance=span.provenance) if isinstance(r, Range) else r for r in value.ranges]

    # Bound variables

    def new_variable(self, name: str, span: Span, reduced: bool, declared: NameRestriction) -> BoundVariable:
        """A bound variable in the current scope and context; what its declaration leaves open, a statement may say."""
        restrictions = [r for r in (declared, self.body.scope.restriction(name)) if r is not None]
        type_ = next((r.type for r in restrictions if r.type is not None), INT)
        if not isinstance(type_, Scalar) or type_.name in ("bool", "long", *PROMOTED):
            message = f"a bound variable cannot be {type_}"
            raise ProgramError("CS0305", span, message, "allowed: int, uint, float, double")
        range_: Dimension = NOT_INFERRED if type_ in (INT, UINT) else INFINITE
        restriction = next((r for r in restrictions if r.range is not None), None)
        if restriction is not None and restriction.range is not None:
            if range_ is INFINITE:
                raise ProgramError("CS0305", restriction.span, f"`{name}` is {type_}: only int and uint have a range")
            range_ = restriction.range
        variable = BoundVariable(name, type_.name, range_, reduced)
        context = self.program.inference.current
        assert context is not None
        context.variables[variable] = span
        if restriction is not None:
            context.restricted.add(variable)
        value = DataValue(type_, (self.dag.bound_variable(variable),))
        self.body.scope.names[name] = Variable(value, None, "a bound variable")
        return variable

    def reduced_variables(self, restriction: ast.Restriction) -> list[BoundVariable]:
        """`l : 0..n`, `int l`, `(i, j) : f` in a reduction: new variables."""
        span, count = (restriction.domain or restriction).span, len(restriction.names)
        declared, variables = self._declared(restriction.type, restriction.domain, span, count, restriction), []
        for (name, span), own in zip(restriction.names, declared, strict=True):
            if self.body.scope.find(name) is not None:
                message = f"`{name}` is already declared, so this reduction cannot reduce it"
                raise ProgramError("CS0312", span, message, "use another name")
            variables.append(self.new_variable(name, restriction.span, True, own))
        return variables

    def _declared(
        self,
        type_: ast.AstNode | None,
        domain: ast.AstNode | None,
        span: Span,
        rank: int,
        restriction: ast.Restriction | None = None,
    ) -> list[NameRestriction]:
        """What a written type and domain, each if there is one, say about each of `rank` bound variables."""
        resolved = self.program.types.resolve(type_) if type_ is not None else None
        box = self.chosen_boxes.get(id(restriction))
        ranges = self.ranges_of(domain, rank, box) if domain is not None else [None] * rank
        return [NameRestriction(resolved, range_, span) for range_ in ranges]

    def lower_bound_function(
        self, parameters: list[ast.BoundParameter], tree: ast.AstNode, expected: Type | None = None
    ) -> FunctionValue:
        """`var c(j, k) = tree`: a function of its bound parameters, its domain inferred."""
        self.body.require_host()
        with self.body.block(), self.program.inference.context() as context:
            self.assign_binders(tree, context, [p.name for p in parameters])
            variables = []
            for position, parameter in enumerate(parameters):
                span = (parameter.domain or parameter).span
                (own,) = self._declared(parameter.type, parameter.domain, span, 1)
                type_ = own.type
                if type_ is None and isinstance(expected, FunctionType) and position < len(expected.parameters):
                    type_ = expected.parameters[position]
                own = replace(own, type=type_ or self.type_from_first_use(parameter.name, tree))
                variables.append(self.new_variable(parameter.name, parameter.span, False, own))
            value = self._operand(tree)
            rest: list[BoundVariable] = []
            if isinstance(value, FunctionValue):
                rest, value = self.eta_expand(value, tree.span)
        return make_function(self.dag, variables + rest, value)

    # Domains as values

    def call_builtin(self, name: str, tree: ast.Call) -> Value | None:
        """A call of `domain`, `size`, `low`, `high`, `file`, `grad` or a primitive; None for other names."""
        if name in SIGNATURES:
            self.body.require_host()
            return lower_primitive(self, name, tree)
        if name == "grad":
            return lower_gradient(self, tree)
        if name == "file":
            file = tree.arguments[0] if len(tree.arguments) == 1 else None
            if not isinstance(file, ast.Literal) or file.kind != "string":
                message = "file takes the name of a .npy file as a string"
                raise ProgramError("CS0501", tree.span, message, 'file("big.npy")')
            return self.program.open_file(str(file.value), file.span)
        if name not in ("domain", "size", "low", "high"):
            return None
        if not tree.arguments or isinstance(tree.arguments[0], ast.Blank):
            raise ProgramError("CS0205", tree.span, f"{'size' if name == 'size' else 'domain'}(f) needs a function")
        function, span = self._operand(tree.arguments[0]), tree.arguments[0].span
        if not isinstance(function, FunctionValue):
            raise ProgramError("CS0408", span, f"{span.excerpt} is {function.type}, not a function")
        dimension = tree.arguments[1] if len(tree.arguments) > 1 else None
        if name == "size":
            return self.size_of(function, dimension, tree.span)
        ranges = self._dimensions(function.domain_with_borders, dimension)
        if name == "domain":
            return DomainValue(ranges)
        if len(ranges) != 1:
            message = f"{name}(f) of {len(ranges)} dimensions needs one of them"
            raise ProgramError("CS0316", tree.span, message, f"`{name}(f, 0)`")
        return self._end(ranges[0], name, tree.span)

    def _dimensions(self, ranges: tuple[Dimension, ...], dimension: ast.AstNode | None) -> tuple[Dimension, ...]:
        """All ranges, or that of one dimension."""
        if dimension is None:
            return ranges
        number = self.host_int(dimension)
        if number is not None and not 0 <= number < len(ranges):
            raise ProgramError("CS0316", dimension.span, f"dimension {number} is not one of 0..{len(ranges)}")
        return (ranges[number or 0],)

    def size_of(self, function: FunctionValue, dimension: ast.AstNode | None, span: Span) -> DataValue:
        """The number of points of a function's domain, or of one dimension."""
        total: int | None = 1
        for range_ in self._dimensions(function.domain_with_borders, dimension):
            if range_ is INFINITE:
                raise ProgramError("CS0314", span, "this domain is infinite: it has no size")
            total = total * range_.size if total is not None and isinstance(range_, Range) else None
        return self._runtime_int(self._int_size(total, span), "size")

    def _int_size(self, total: int | None, span: Span) -> int | None:
        if total is not None and total >= 2**31:
            message = f"the size {total} does not fit into int"
            raise ProgramError("CS0316", span, message, "use the sizes of the dimensions: `size(f, 0)`")
        return total

    def _runtime_int(self, number: int | None, name: str) -> DataValue:
        return DataValue(INT, (self.dag.runtime_scalar(number, "int", name),))

    def _end(self, range_: Dimension, name: str, span: Span) -> DataValue:
        """The low, high or size of a range."""
        if range_ is INFINITE:
            raise ProgramError("CS0314", span, "this domain is infinite: it has no ends")
        return self._runtime_int(getattr(range_, name) if isinstance(range_, Range) else None, name)

    def domain_member(self, domain: DomainValue, tree: ast.MemberAccess) -> DataValue:
        """`domain(f)[0].low` and the like."""
        if MEMBERS.get(tree.name) == "size" and INFINITE not in [r for box in domain.boxes for r in box]:
            return self._runtime_int(self._int_size(count(domain), tree.span), "size")
        if tree.name not in MEMBERS or len(domain.ranges) != 1 or domain.more:
            message = f"a {domain.type} has no member `{tree.name}`"
            raise ProgramError("CS0206", tree.name_span, message, "one dimension `domain(f)[0]` has low, high and size")
        return self._end(domain.ranges[0], MEMBERS[tree.name], tree.span)

    def domain_index(self, domain: DomainValue, tree: ast.Call) -> DomainValue:
        """`domain(f)[k]`."""
        if len(tree.arguments) != 1:
            raise ProgramError("CS0316", tree.span, "a domain takes one index: the dimension")
        if domain.more:
            raise ProgramError("CS0323", tree.span, "a union of boxes has no dimensions of its own")
        return DomainValue(self._dimensions(domain.ranges, tree.arguments[0]))
