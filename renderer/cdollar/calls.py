"""Calls of C$: functions and indices, overloads in the paper's order, promotion, conversion.

That order is: ordinary, user-defined, reduction, currying, promotion.
"""

from __future__ import annotations

from renderer.cdollar import syntax
from renderer.cdollar.builtins import FUNCTIONS
from renderer.cdollar.dag import (
    INFINITE,
    UNSOLVED,
    Bound,
    Node,
    Range,
    substitute,
)
from renderer.cdollar.domains import Inference, Use, intersect
from renderer.cdollar.operations import OPERATIONS
from renderer.cdollar.report import ProgramError, Span
from renderer.cdollar.types import (
    BOOL,
    FLOAT,
    Functional,
    Scalar,
    Type,
    Vector,
    base_of,
    components,
    is_data,
    widening,
)
from renderer.cdollar.values import (
    BlankValue,
    DataValue,
    DomainValue,
    FamilyValue,
    FunctionValue,
    NotScalar,
    Scope,
    UserFunction,
    Value,
)


class Calls:
    """What Checker knows of calls; uses its scope, frames and arithmetic."""

    # Calls

    def eval_Call(self, tree: syntax.Call) -> Value:
        if tree.restrictions and not self.may_reduce(tree):
            raise ProgramError(
                "CS0310",
                tree.restrictions[0].span,
                "a restriction stands only in a reduction",
                "`sum(a(i), i : 0..n)`, or a statement of its own: `i : 0..n;`",
            )
        if (
            isinstance(tree.callee, syntax.Member)
            and isinstance(tree.callee.subject, syntax.Name)
            and tree.callee.subject.name == "Math"
        ):
            callee = self.eval(tree.callee)
            return (
                self.call_family(callee.name, tree)
                if isinstance(callee, FamilyValue)
                else self.not_a_function(tree, callee)
            )
        if isinstance(tree.callee, syntax.Member) and tree.callee.name == "GetLength":
            subject = self.eval_data(tree.callee.subject)
            if isinstance(subject, FunctionValue) and len(tree.arguments) == 1:
                return self.size_of(subject, tree.arguments[0], tree.span)
        callee = self.eval(tree.callee)
        if isinstance(callee, FamilyValue):
            return self.call_family(callee.name, tree)
        if isinstance(callee, DomainValue):
            return self.domain_index(callee, tree)
        if not isinstance(callee, FunctionValue):
            return self.not_a_function(tree, callee)
        arguments = [self.argument(argument) for argument in tree.arguments]
        return self.apply(callee, arguments, tree)

    def not_a_function(self, tree: syntax.Call, callee: Value):
        raise ProgramError("CS0408", tree.callee.span, f"{tree.callee.span.short} is {callee.type}, not a function")

    def argument(self, tree: syntax.Tree, expected: Type | None = None) -> Value | BlankValue:
        if isinstance(tree, syntax.Blank):
            return BlankValue()
        return self.eval(tree, expected)

    def apply(self, function: FunctionValue, arguments: list, tree: syntax.Call) -> Value:
        """Ordinary application, or currying if arguments are missing or blank, or promotion if some are functions."""
        if self.scalar:
            raise NotScalar
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

    def curried(self, function: FunctionValue, arguments: list, tree: syntax.Call) -> FunctionValue:
        free: list[Bound] = []
        domain = self.flat_domain(function)
        filled = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, BlankValue):
                type_ = function.type.parameters[position]
                if not isinstance(type_, Scalar):
                    raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
                variable = Bound(f"_{position}", type_.name, domain[position])
                free.append(variable)
                argument = DataValue(type_, (self.dag.bound(variable),))
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
        self, function: FunctionValue, values: list[DataValue], spans: list[Span], tree: syntax.Call, quiet=frozenset()
    ) -> DataValue:
        """A function at a point; each index is noted for the inference of domains."""
        converted = []
        position = 0
        for value, type_, span in zip(values, function.type.parameters, spans, strict=False):
            part = self.convert(value, type_, span)
            converted.append(part)
            for node in part.nodes:
                is_free = node.op == "bound" and node.value in quiet
                self.note(function, position, node, tree.span, is_free)
                position += 1
        return self.access(function, converted, tree.span)

    def note(self, function: FunctionValue, position: int, index: Node, span: Span, skip: bool) -> None:
        if skip or index.type not in ("int", "uint"):
            return
        range_ = function.domain[position]
        border = bool(function.borders and function.borders[position])
        if range_ is UNSOLVED:
            return
        use = Use(index, range_, span, self.guarded > 0, border)
        if self.unit.frames:
            self.unit.frames[-1].uses.append(use)
        else:
            Inference([], [use], {}).run()

    def access(self, function: FunctionValue, arguments: list[DataValue], span: Span | None = None) -> DataValue:
        indices = tuple(node for value in arguments for node in value.nodes)
        borders = function.borders or (None,) * len(indices)
        if function.node.free:
            return self.reduced_application(function, indices, borders, span)
        node = self.dag.access(function.node, indices, borders)
        if span is not None:
            self.dag.places.setdefault(node, span)
        count = len(components(function.type.result))
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
        body = substitute(self.dag, function.node.inputs, dict(zip(function.node.value, inside, strict=True)))
        value = DataValue(function.type.result, body)
        if zero is not None:
            value = self.arithmetic.select(DataValue(BOOL, (zero,)), self.unit.zero(value.type), value)
        return value

    def folded_index(self, index: Node, border: str, range_: Range) -> tuple[Node, Node | None]:
        """An index by a border mode, and where `zero` replaces the value."""
        operate, type_ = self.arithmetic.operate, index.type
        low, high, size = (self.dag.argument(n, type_, "border") for n in (range_.low, range_.high - 1, range_.size))
        place = operate("-", type_, index, low)
        if border == "wrap":
            place = operate("%", type_, operate("+", type_, operate("%", type_, place, size), size), size)
            return operate("+", type_, place, low), None
        if border == "mirror":
            twice = self.dag.argument(2 * range_.size, type_, "border")
            last = self.dag.argument(2 * range_.size - 1, type_, "border")
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
            raise NotScalar
        slots: dict[tuple[str, int], Bound] = {}
        ranges: dict[Bound, list] = {}
        order: list[Bound] = []
        data = []
        for value in values:
            if not isinstance(value, FunctionValue):
                data.append(value)
                continue
            data.append(self.open_into(value, slots, ranges, order, span))
        for variable, found in ranges.items():
            variable.range = intersect(variable.name, found, span)
        return self.close(order, work(data))

    def open_into(
        self, function: FunctionValue, slots: dict, ranges: dict, order: list[Bound], span: Span
    ) -> DataValue:
        """A function applied to the shared variables of a promotion: the k-th parameter of each type is one of them."""
        seen: dict[str, int] = {}
        domain = iter(self.flat_domain(function))
        arguments = []
        for type_ in function.type.parameters:
            parts = []
            for base in components(type_):
                place = seen[base] = seen.get(base, -1) + 1
                if (base, place) not in slots:
                    slots[base, place] = Bound(("ijkmnp" if base in ("int", "uint") else "xyzuvw")[place % 6], base)
                    order.append(slots[base, place])
                variable = slots[base, place]
                range_ = next(domain)
                if isinstance(range_, Range) and not range_.why:
                    range_ = Range(range_.low, range_.high, range_.shrunk, f"{span.short} at {span.at}")
                ranges.setdefault(variable, []).append(INFINITE if range_ is UNSOLVED else range_)
                parts.append(self.dag.bound(variable))
            arguments.append(DataValue(type_, tuple(parts)))
        return self.access(function, arguments, span)

    # Overloads of user functions

    def call_family(self, name: str, tree: syntax.Call) -> Value:
        family = self.unit.families.get(name, [])
        if name == "fold" and not family:
            return self.fold(tree)
        if self.may_reduce(tree):
            return self.reduce_family(name, family, tree)
        if name in self.special and not family:
            return self.special[name](self, tree)
        expected = family[0].types if len(family) == 1 else ()
        values = []
        for position, argument in enumerate(tree.arguments):
            values.append(self.argument(argument, expected[position] if position < len(expected) else None))
        return self.call_overloaded(name, family, values, tree)

    def call_overloaded(self, name: str, family: list[UserFunction], values: list, tree: syntax.Call) -> Value:
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
        missing = [f for f in family if len(values) < len(f.types) or blanks and len(values) == len(f.types)]
        if missing and not any(len(f.types) == len(values) for f in family) or blanks and missing:
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
            rest = function.item.parameters[len(values) :]
            if not rest or any(parameter.default is None for parameter in rest):
                continue
            checker = type(self)(self.unit, Scope(), self.scalar)
            full = values + [checker.root(parameter.default) for parameter in rest]
            if self.choose([function], full, promote=True) is not None:
                return function, full
        return None

    def builtin_fits(self, name: str, values: list) -> bool:
        return all(isinstance(v, DataValue) for v in values) and self.arithmetic.function(name, values) is not None

    def exact(self, function: UserFunction, values: list) -> bool:
        return all(isinstance(v, DataValue) and v.type == t for v, t in zip(values, function.types, strict=True))

    def promote_call(self, function: UserFunction, values: list, tree: syntax.Call) -> Value:
        """Functions that fill data parameters are lifted; functional parameters keep what they are given."""
        spans = [a.span for a in tree.arguments]
        lifted = [v for v, t in zip(values, function.types, strict=True) if not isinstance(t, Functional)]

        def work(data: list[DataValue]) -> DataValue:
            rest = iter(data)
            full = [v if isinstance(t, Functional) else next(rest) for v, t in zip(values, function.types, strict=True)]
            found = self.call_user(function, full, tree.span, spans)
            if isinstance(found, FunctionValue):
                raise ProgramError("CS0410", tree.span, f"{function.name} returns a function: it cannot be promoted")
            return found

        return self.promoted(lifted, work, tree.span)

    def curried_family(self, function: UserFunction, values: list, tree: syntax.Call) -> Value:
        if any(isinstance(t, Functional) for t in function.types):
            return self.no_overload(function.name, [function], values, tree)
        whole = self.function_value(function)
        return self.apply(whole, values, tree)

    def choose(self, family: list[UserFunction], values: list, promote: bool = False) -> UserFunction | None:
        """The overload whose parameters the values fill with the fewest conversions."""
        best, best_cost = None, None
        for function in family:
            if len(function.types) != len(values):
                continue
            costs = [self.fit(value, type_, promote) for value, type_ in zip(values, function.types, strict=True)]
            if any(cost is None for cost in costs):
                continue
            if best is None or sum(costs) < best_cost:
                best, best_cost = function, sum(costs)
        return best

    def fit(self, value: Value, target: Type, promote: bool) -> int | None:
        """How far a value is from a parameter's type; None if it does not fit."""
        if isinstance(value, BlankValue):
            return None
        if isinstance(target, Functional):
            if isinstance(value, FamilyValue):
                return 1 if self.family_member(value, target) is not None else None
            if not isinstance(value, FunctionValue) or value.type.parameters != target.parameters:
                return None
            steps = widening(value.type.result, target.result)
            return None if steps is None else steps + (target.array and not value.type.array)
        if isinstance(value, FamilyValue):
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
        return value.type.name == "int" and target.name == "uint" and value.node.value.number >= 0

    def no_overload(self, name: str, family: list[UserFunction], values: list, tree: syntax.Call):
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
        if len(function.types) != len(values):
            return f"it takes {len(function.types)} arguments, {len(values)} are given"
        for name, type_, value in zip(function.names, function.types, values, strict=True):
            if self.fit(value, type_, True) is None and not isinstance(value, BlankValue):
                return f"`{name}` is {type_}, but {self.describe(value)} is given"
        return ""

    def describe(self, value: Value) -> str:
        return f"function {value.name}" if isinstance(value, FamilyValue) else str(value.type)

    def call_user(self, function: UserFunction, values: list, span: Span, spans: list[Span] | None = None) -> Value:
        spans = (spans or []) + [span] * len(values)
        converted = [self.convert(v, t, s) for v, t, s in zip(values, function.types, spans, strict=False)]
        return self.unit.call(self, function, converted, span)

    def function_value(self, function: UserFunction) -> FunctionValue:
        """A user's function of data as a value: a function of variables without end."""
        if self.scalar:
            raise NotScalar
        variables, values = [], []
        for name, type_ in zip(function.names, function.types, strict=True):
            parts = [Bound(name, base, INFINITE) for base in components(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound, parts))))
        result = self.unit.call(self, function, values, function.item.name_span)
        type_ = Functional(result.type, function.types)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))

    def family_member(self, value: FamilyValue, expected: Functional) -> UserFunction | str | None:
        """The overload that is a function of the expected type."""
        for function in self.unit.families.get(value.name, []):
            if function.types == expected.parameters and widening(function.result, expected.result) is not None:
                return function
        if value.name in OPERATIONS and all(isinstance(p, (Scalar, Vector)) for p in expected.parameters):
            if len(OPERATIONS[value.name].parameters) == len(expected.parameters):
                return value.name
        return None

    def family_as_function(self, value: FamilyValue, expected: Functional | None, span: Span) -> FunctionValue:
        if self.scalar:
            raise NotScalar
        family = self.unit.families.get(value.name, [])
        if expected is not None:
            member = self.family_member(value, expected)
            if member is None:
                raise ProgramError("CS0412", span, f"no overload of {value.name} is {expected}")
            if isinstance(member, UserFunction):
                return self.function_value(member)
            return self.builtin_function_value(value.name, expected.parameters)
        if len(family) == 1 and all(is_data(t) for t in family[0].types):
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
            parts = [Bound("xyzw"[position], base, INFINITE) for base in components(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound, parts))))
        result = self.arithmetic.function(name, values)
        type_ = Functional(result.type, parameters)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))

    # Conversion

    def convert(self, value: Value, target: Type, span: Span, explicit: bool = False) -> Value:
        """The value as the target type, by the conversions that lose nothing."""
        if isinstance(target, Functional):
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
            return self.arithmetic.coerce(value, base_of(target))
        narrow = base_of(value.type) is not None and base_of(target) is not None
        hint = (
            f"a cast says that loss is meant: `({target}) ...`" if narrow and BOOL not in (value.type, target) else ""
        )
        if value.type == BOOL and narrow:
            hint = "make a bool a number: `b ? 1 : 0`"
        raise ProgramError("CS0401", span, f"{span.short} is {value.type}, but {target} is needed", hint)

    def convert_function(self, value: Value, target: Functional, span: Span) -> FunctionValue:
        if isinstance(value, FamilyValue):
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
            base = base_of(target.result)
            value = self.promoted([value], lambda v: self.arithmetic.coerce(v[0], base), span)
        if target.array and not value.type.array:
            return self.evaluated(value, span)
        if not target.array and value.type.array:
            return FunctionValue(value.type.plain, value.node, value.own_domain, value.borders)
        return value
