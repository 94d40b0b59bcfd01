"""Calls of C$: functions and indices, tried in the order of the paper: ordinary, user-defined, reduction, currying,
promotion. And the conversion of what is given to what is wanted.
"""

from __future__ import annotations

from renderer.cdollar.checker.domain_inference import IndexConstraint, Inference, unify_ranges
from renderer.cdollar.checker.values import (
    BlankValue,
    DataValue,
    DomainValue,
    FunctionValue,
    NotDeviceCode,
    OverloadSet,
    Value,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, BoundVariable, Node, Range, substitute
from renderer.cdollar.ir.types import BOOL, FunctionType, Scalar, Type, component_types, scalar_type_of, widening


class Calls:
    """What Checker knows of calls; uses its scope, inference_stack and arithmetic."""

    # Calls

    def eval_Call(self, tree: ast.Call) -> Value:
        if tree.restrictions and not self.may_reduce(tree):
            raise ProgramError(
                "CS0310",
                tree.restrictions[0].span,
                "a restriction stands only in a reduction",
                "`sum(a(i), i : 0..n)`, or a statement of its own: `i : 0..n;`",
            )
        if (
            isinstance(tree.callee, ast.MemberAccess)
            and isinstance(tree.callee.subject, ast.Name)
            and tree.callee.subject.name == "Math"
        ):
            callee = self.eval(tree.callee)
            return (
                self.call_family(callee.name, tree)
                if isinstance(callee, OverloadSet)
                else self.not_a_function(tree, callee)
            )
        if isinstance(tree.callee, ast.MemberAccess) and tree.callee.name == "GetLength":
            subject = self.eval_data(tree.callee.subject)
            if isinstance(subject, FunctionValue) and len(tree.arguments) == 1:
                return self.size_of(subject, tree.arguments[0], tree.span)
        callee = self.eval(tree.callee)
        if isinstance(callee, OverloadSet):
            return self.call_family(callee.name, tree)
        if isinstance(callee, DomainValue):
            return self.domain_index(callee, tree)
        if not isinstance(callee, FunctionValue):
            return self.not_a_function(tree, callee)
        arguments = [self.argument(argument) for argument in tree.arguments]
        return self.apply(callee, arguments, tree)

    def not_a_function(self, tree: ast.Call, callee: Value):
        raise ProgramError("CS0408", tree.callee.span, f"{tree.callee.span.short} is {callee.type}, not a function")

    def argument(self, tree: ast.AstNode, expected: Type | None = None) -> Value | BlankValue:
        if isinstance(tree, ast.Blank):
            return BlankValue()
        return self.eval(tree, expected)

    def apply(self, function: FunctionValue, arguments: list, tree: ast.Call) -> Value:
        """Ordinary application, or currying if arguments are missing or blank, or promotion if some are functions."""
        if self.scalar:
            raise NotDeviceCode
        wanted = len(function.type.parameters)
        if len(arguments) > wanted:
            raise ProgramError(
                "CS0402",
                tree.span,
                f"{tree.callee.span.short} is {function.type}: it takes {wanted} arguments, {len(arguments)} are given",
            )
        arguments = arguments + [BlankValue()] * (wanted - len(arguments))
        spans = [a.span for a in tree.arguments] + [tree.span] * wanted
        arguments = [
            a if isinstance(a, BlankValue) else self.settled(a, s) for a, s in zip(arguments, spans, strict=False)
        ]
        if all(isinstance(a, BlankValue) for a in arguments):
            return function
        if any(isinstance(a, BlankValue) for a in arguments):
            return self.curried(function, arguments, tree)
        return self.promoted(arguments, lambda v: self.indexed(function, v, spans, tree), tree.span)

    def curried(self, function: FunctionValue, arguments: list, tree: ast.Call) -> FunctionValue:
        free: list[BoundVariable] = []
        domain = self.flat_domain(function)
        filled = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, BlankValue):
                type_ = function.type.parameters[position]
                if not isinstance(type_, Scalar):
                    raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
                variable = BoundVariable(f"_{position}", type_.name, domain[position])
                free.append(variable)
                argument = DataValue(type_, (self.dag.bound_variable(variable),))
            filled.append(argument)
        spans = [a.span for a in tree.arguments] + [tree.span] * len(filled)
        value = self.promoted(
            filled, lambda v: self.indexed(function, v, spans, tree, quiet=frozenset(free)), tree.span
        )
        if isinstance(value, FunctionValue):
            raise ProgramError(
                "CS0409",
                tree.span,
                "blanks and functions cannot be mixed as arguments",
                "name the free dimensions: `var r(k) = ...`",
            )
        return self.close(free, value)

    def indexed(
        self, function: FunctionValue, values: list[DataValue], spans: list[Span], tree: ast.Call, quiet=frozenset()
    ) -> DataValue:
        """A function at a point; each index is noted for the inference of domains."""
        converted = []
        position = 0
        for value, type_, span in zip(values, function.type.parameters, spans, strict=False):
            part = self.convert(value, type_, span)
            converted.append(part)
            for node in part.nodes:
                is_free = node.op == "variable" and node.attribute in quiet
                self.note(function, position, node, tree.span, is_free)
                position += 1
        return self.access(function, converted, tree.span)

    def note(self, function: FunctionValue, position: int, index: Node, span: Span, skip: bool) -> None:
        if skip or index.type not in ("int", "uint"):
            return
        range_ = function.domain[position]
        border = bool(function.borders and function.borders[position])
        if range_ is NOT_INFERRED:
            return
        use = IndexConstraint(index, range_, span, self.guarded > 0, border)
        if self.compilation.inference_stack:
            self.compilation.inference_stack[-1].uses.append(use)
        else:
            Inference([], [use], {}).run()

    def access(self, function: FunctionValue, arguments: list[DataValue], span: Span | None = None) -> DataValue:
        indices = tuple(node for value in arguments for node in value.nodes)
        borders = function.borders or (None,) * len(indices)
        if function.node.free_variables:
            return self.reduced_application(function, indices, borders, span)
        node = self.dag.access(function.node, indices, borders)
        if span is not None:
            self.dag.spans.setdefault(node, span)
        count = len(component_types(function.type.result))
        return DataValue(function.type.result, tuple(self.dag.component(node, k) for k in range(count)))

    def reduced_application(
        self, function: FunctionValue, indices: tuple, borders: tuple, span: Span | None
    ) -> DataValue:
        """A function that hangs on outer bound variables is put in place of its application."""
        zero, inside = None, []
        for index, border, range_ in zip(indices, borders, function.domain, strict=True):
            if border is not None and isinstance(range_, Range):
                index, outside = self.folded_index(index, border, range_)
                if outside is not None:
                    zero = outside if zero is None else self.arithmetic.operate("||", "bool", zero, outside)
            inside.append(index)
        body = substitute(self.dag, function.node.inputs, dict(zip(function.node.attribute, inside, strict=True)))
        value = DataValue(function.type.result, body)
        if zero is not None:
            value = self.arithmetic.select(DataValue(BOOL, (zero,)), self.compilation.zero(value.type), value)
        return value

    def folded_index(self, index: Node, border: str, range_: Range) -> tuple[Node, Node | None]:
        """An index by a border mode, and where `zero` replaces the value."""
        operate, type_ = self.arithmetic.operate, index.type
        low, high, size = (
            self.dag.runtime_scalar(n, type_, "border") for n in (range_.low, range_.high - 1, range_.size)
        )
        place = operate("-", type_, index, low)
        if border == "wrap":
            place = operate("%", type_, operate("+", type_, operate("%", type_, place, size), size), size)
            return operate("+", type_, place, low), None
        if border == "mirror":
            twice = self.dag.runtime_scalar(2 * range_.size, type_, "border")
            last = self.dag.runtime_scalar(2 * range_.size - 1, type_, "border")
            place = operate("%", type_, operate("+", type_, operate("%", type_, place, twice), twice), twice)
            place = operate("min", type_, place, operate("-", type_, last, place))
            return operate("+", type_, place, low), None
        outside = operate("||", "bool", operate("<", type_, index, low), operate(">", type_, index, high))
        cut = operate("min", type_, operate("max", type_, index, low), high)
        return cut, outside if border == "zero" else None

    # Promotion

    def promoted(self, values: list[Value], work, span: Span) -> Value:
        """work(data) -> data, lifted to functions: parameters of equal type run together, others stay apart."""
        functions = [v for v in values if isinstance(v, FunctionValue)]
        if not functions:
            return work(values)
        if self.scalar:
            raise NotDeviceCode
        slots: dict[tuple[str, int], BoundVariable] = {}
        ranges: dict[BoundVariable, list] = {}
        order: list[BoundVariable] = []
        data = []
        for value in values:
            if not isinstance(value, FunctionValue):
                data.append(value)
                continue
            data.append(self.open_into(value, slots, ranges, order, span))
        for variable, found in ranges.items():
            variable.range = unify_ranges(variable.name, found, span)
        return self.close(order, work(data))

    def open_into(
        self, function: FunctionValue, slots: dict, ranges: dict, order: list[BoundVariable], span: Span
    ) -> DataValue:
        """A function applied to the shared variables of a promotion: the k-th parameter of each type is one of them."""
        seen: dict[str, int] = {}
        domain = iter(self.flat_domain(function))
        arguments = []
        for type_ in function.type.parameters:
            parts = []
            for base in component_types(type_):
                place = seen[base] = seen.get(base, -1) + 1
                if (base, place) not in slots:
                    slots[base, place] = BoundVariable(
                        ("ijkmnp" if base in ("int", "uint") else "xyzuvw")[place % 6], base
                    )
                    order.append(slots[base, place])
                variable = slots[base, place]
                range_ = next(domain)
                if isinstance(range_, Range) and not range_.provenance:
                    range_ = Range(range_.low, range_.high, range_.narrowed, f"{span.short} at {span.at}")
                ranges.setdefault(variable, []).append(INFINITE if range_ is NOT_INFERRED else range_)
                parts.append(self.dag.bound_variable(variable))
            arguments.append(DataValue(type_, tuple(parts)))
        return self.access(function, arguments, span)

    # Conversion

    def convert(self, value: Value, target: Type, span: Span, explicit: bool = False) -> Value:
        """The value as the target type, by the conversions that lose nothing."""
        if isinstance(target, FunctionType):
            return self.convert_function(value, target, span)
        value = self.settled(value, span)
        if isinstance(value, FunctionValue):
            raise ProgramError(
                "CS0401",
                span,
                f"{span.short} is the function {value.type}, but {target} is needed",
                "apply it, or reduce it: `sum(f)`",
            )
        if value.type == target:
            return value
        if widening(value.type, target) is not None or self.literal_fits(value, target):
            return self.arithmetic.coerce(value, scalar_type_of(target))
        narrow = scalar_type_of(value.type) is not None and scalar_type_of(target) is not None
        hint = (
            f"a cast says that loss is meant: `({target}) ...`" if narrow and BOOL not in (value.type, target) else ""
        )
        if value.type == BOOL and narrow:
            hint = "make a bool a number: `b ? 1 : 0`"
        raise ProgramError("CS0401", span, f"{span.short} is {value.type}, but {target} is needed", hint)

    def convert_function(self, value: Value, target: FunctionType, span: Span) -> FunctionValue:
        if isinstance(value, OverloadSet):
            value = self.family_as_function(value, target, span)
        if not isinstance(value, FunctionValue):
            shown = value.type if isinstance(value, DataValue) else "a domain"
            names = ", ".join("ijklmn"[k % 6] + " : 0..n" for k in range(len(target.parameters)))
            raise ProgramError(
                "CS0401",
                span,
                f"{span.short} is {shown}, but the function {target} is needed",
                f"a function is made by `var f({names}) = ...`",
            )
        if value.type.parameters != target.parameters or widening(value.type.result, target.result) is None:
            hint = (
                "blanks leave dimensions free: `a(i, )`" if len(value.type.parameters) > len(target.parameters) else ""
            )
            raise ProgramError("CS0401", span, f"{span.short} is {value.type}, but {target} is needed", hint)
        if value.type.result != target.result:
            base = scalar_type_of(target.result)
            value = self.promoted([value], lambda v: self.arithmetic.coerce(v[0], base), span)
        if target.is_array and not value.type.is_array:
            return self.evaluated(value, span)
        if not target.is_array and value.type.is_array:
            return FunctionValue(value.type.as_function_type, value.node, value.own_domain, value.borders)
        return value
