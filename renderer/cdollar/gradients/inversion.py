"""Inverts reads at affine indices: which points of a context read an element, solved for one variable a dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import Affine, index_bounds, value_bounds
from renderer.cdollar.ir.passes import open_inputs
from renderer.cdollar.ir.types import INT, FunctionType, Scalar

Context = tuple[ir.BoundVariable, ...]
MAX_IMAGES = 6  # of an element under the border modes wrap and mirror


class Use(NamedTuple):
    """A read of a function: what it passes on at each point of a context, where `guard` holds."""

    context: Context
    guard: ir.Node | None
    value: ir.Node
    read: ir.Node  # its inputs are the function and the indices, its attribute the Access


@dataclass(frozen=True)
class Image:
    """One way to read element y of a dimension, of those in `range`: where the index is sign * y + offset.

    `edge` is "below" or "above" for the indices that the border mode clamp moves to the first or last element.
    """

    range: ir.Range
    sign: int = 1
    offset: int = 0
    edge: str = ""


def images_of(form: Affine, range_: ir.Range, border: str | None) -> list[Image] | None:
    """The images of a dimension's elements under a border mode; None if there are too many."""
    bounds = value_bounds(form)
    if bounds is None:
        return [Image(range_)] if border in (None, "zero") else None
    low, size = range_.low, range_.size
    period = 2 * size if border == "mirror" else size
    turns = range(1)
    if border in ("wrap", "mirror"):
        turns = range((bounds[0] - low) // period, (bounds[1] - low) // period + 1)
    if len(turns) > MAX_IMAGES:
        return None
    ways = [(1, period * t) for t in turns]
    if border == "mirror":
        ways += [(-1, 2 * low + period * (t + 1) - 1) for t in turns]
    images = []
    for sign, offset in ways:  # of the elements that the index reaches
        ends = sorted(sign * (end - offset) for end in bounds)
        reached = ir.Range(max(low, ends[0]), max(low, min(range_.high, ends[1] + 1)))
        if reached.size:
            images.append(Image(reached, sign, offset))
    if border == "clamp" and bounds[0] < low:
        images.append(Image(ir.Range(low, low + 1), edge="below"))
    if border == "clamp" and bounds[1] >= range_.high:
        images.append(Image(ir.Range(range_.high - 1, range_.high), edge="above"))
    return images


class Rewriter:
    """Rewrites expressions over bound variables in one program."""

    def __init__(self, dag: ir.Dag):
        self.dag, self.algebra = dag, Algebra(dag)

    def fresh(self, variable: ir.BoundVariable, reduced: bool = True) -> ir.BoundVariable:
        """A new variable with the range of another one."""
        return ir.BoundVariable(variable.name, variable.type, variable.range, reduced)

    def sum_over(self, variables: list[ir.BoundVariable], value: ir.Node) -> ir.Node:
        """The sum of a value over variables; of those that it does not depend on, a multiple."""
        used = tuple(v for v in variables if v in value.free_variables)
        count = 1
        for variable in variables:
            count *= 1 if variable in used else variable.range.size
        if used:
            value = self.dag.intern("reduce", value.type, (value,), (ir.Reduction("+"), used))
        return self.algebra.times(value, count)

    def replaced(
        self, nodes: tuple[ir.Node, ...], replacement: dict[ir.BoundVariable, ir.Node], clamped: bool = False
    ) -> tuple[ir.Node, ...]:
        """Nodes with variables replaced; with `clamped`, reads that may now leave their domain are clamped.

        A mask around the nodes drops what they read there.
        """
        nodes = ir.substitute(self.dag, nodes, replacement)
        if not clamped:
            return nodes

        def change(node: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
            attribute = None
            if isinstance(node.attribute, ir.Access) and not inputs[0].free_variables:
                borders = tuple(b or "clamp" for b in node.attribute.borders)
                if borders != node.attribute.borders and any(i.free_variables for i in inputs[1:]):
                    attribute = ir.Access(borders)
            return ir.with_inputs(self.dag, node, inputs, attribute)

        return ir.rewrite(nodes, change, open_inputs)


class Inversion:
    """One image of each dimension of a use at affine indices: solved for a variable a dimension."""

    def __init__(
        self, transposer: Rewriter, use: Use, forms: list[Affine], targets: Context, images: tuple[Image, ...]
    ) -> None:
        self.owner, self.algebra, self.dag = transposer, transposer.algebra, transposer.dag
        self.use, self.targets = use, targets
        self.renamed = {v: transposer.fresh(v) for v in use.context}
        self.solved: dict[ir.BoundVariable, Affine] = {}  # by renamed variable
        self.divided: dict[ir.BoundVariable, tuple[Affine, int]] = {}  # those that are a form over a number
        self.conditions: list[ir.Node] = []
        self.masked: set[ir.BoundVariable] = set()  # solved variables whose values may leave their range
        self.has_other_conditions = False
        self.is_possible = True
        rename = {v: Affine(((new, 1),), 0) for v, new in self.renamed.items()}
        pending = []
        for form, target, image in zip(forms, targets, images, strict=True):
            own = substituted(form, rename)
            if image.edge:
                self.at_edge(own, target, image)
            else:
                wanted = Affine(((target, image.sign),), image.offset)
                pending.append(own.add(wanted.scale(-1)))
        # Dimensions with few variables first: they leave least to choose.
        for form in sorted(pending, key=lambda f: len(self.own_terms(f))):
            self.solve(substituted(form, self.solved))
        forms = [*self.solved.values(), *(substituted(f, self.solved) for f, _ in self.divided.values())]
        self.is_possible &= not any(v in self.divided for f in forms for v, _ in f.terms)

    def own_terms(self, form: Affine) -> list[tuple[ir.BoundVariable, int]]:
        """The terms of the context's variables."""
        return [(v, c) for v, c in form.terms if v in set(self.renamed.values())]

    def at_edge(self, form: Affine, target: ir.BoundVariable, image: Image) -> None:
        """Indices that clamp to the first or the last element."""
        range_, below = target.range, image.edge == "below"
        edge = self.algebra.number(range_.low if below else range_.high - 1, target.type)
        self.conditions.append(self.algebra.compare("==", self.dag.bound_variable(target), edge))
        limit = range_.low - 1 if below else range_.high
        rest = form.add(Affine((), -limit)) if not below else form.scale(-1).add(Affine((), limit))
        self.narrow(rest)
        self.at_least_zero(rest)
        self.has_other_conditions = True

    def narrow(self, form: Affine) -> None:
        """Narrows the range of each variable of a form to where it can be at least 0."""
        for variable, coefficient in self.own_terms(form):
            others = value_bounds(Affine(tuple(t for t in form.terms if t[0] is not variable), form.constant))
            if others is None:
                continue
            low, high = variable.range.low, variable.range.high
            if coefficient > 0:
                low = max(low, -(others[1] // coefficient))
            else:
                high = min(high, others[1] // -coefficient + 1)
            variable.range = ir.Range(low, max(low, high))

    def solve(self, form: Affine) -> None:
        """Solves form = 0 for the variable that leaves the least to be summed over."""
        terms = self.own_terms(form)
        if any(v in self.divided for v, _ in terms) or any(v.type != "int" for v, _ in terms):
            self.is_possible = False
            return
        if not terms:
            self.has_other_conditions = True
            self.conditions.append(self.algebra.compare("==", self.node(form), self.algebra.number(0, "int")))
            return
        pivot, coefficient = max(terms, key=lambda t: (t[0].range.size, -abs(t[1])))
        rest = Affine(tuple(t for t in form.terms if t[0] is not pivot), form.constant)
        rest = rest.scale(-1 if coefficient > 0 else 1)
        if abs(coefficient) > 1:
            self.divided[pivot] = rest, abs(coefficient)
            return
        self.solved = {v: substituted(f, {pivot: rest}) for v, f in self.solved.items()} | {pivot: rest}
        count = len(self.conditions)
        self.at_least_zero(rest.add(Affine((), -pivot.range.low)))
        self.at_least_zero(rest.scale(-1).add(Affine((), pivot.range.high - 1)))
        if len(self.conditions) > count:
            self.masked.add(pivot)

    def at_least_zero(self, form: Affine) -> None:
        """A condition, unless it always holds."""
        bounds = value_bounds(form)
        if bounds is None or bounds[0] < 0:
            self.conditions.append(self.algebra.compare(">=", self.node(form), self.algebra.number(0, "int")))

    def node(self, form: Affine) -> ir.Node:
        """A form as an int expression."""
        a, result = self.algebra, None
        for variable, coefficient in form.terms:
            term = self.dag.bound_variable(variable)
            term = term if variable.type == "int" else self.dag.apply("convert", "int", term)
            if result is not None and coefficient < 0:
                result = a.op("-", result, a.times(term, -coefficient))
                continue
            term = a.times(term, coefficient) if coefficient != -1 else a.op("neg", term)
            result = term if result is None else a.op("+", result, term)
        if result is None:
            return a.number(form.constant, "int")
        if form.constant < 0:
            return a.op("-", result, a.number(-form.constant, "int"))
        return a.op("+", result, a.number(form.constant, "int"))

    def term(self) -> Iterator[ir.Node]:
        """The sum over the variables that were not solved for; none if a range is empty."""
        a = self.algebra
        nodes = {v: self.node(f) for v, f in self.solved.items()}
        for variable, (form, divisor) in self.divided.items():
            form = substituted(form, self.solved)
            dividend, number = self.node(form), a.number(divisor, "int")
            self.conditions.append(a.compare("==", a.op("%", dividend, number), a.number(0, "int")))
            low, high = variable.range.low, variable.range.high - 1
            self.at_least_zero(form.add(Affine((), -low * divisor)))
            self.at_least_zero(form.scale(-1).add(Affine((), high * divisor)))
            nodes[variable] = a.op("/", dividend, number)
        rest = [v for v in self.renamed.values() if v not in nodes]
        if any(v.range.size == 0 for v in rest):
            return
        replacement = {v: nodes.get(n, self.dag.bound_variable(n)) for v, n in self.renamed.items()}
        padded = self.padded(replacement, is_summed=any(v.range.size > 1 for v in rest))
        if padded is not None:
            yield self.owner.sum_over(rest, padded)
            return
        mask: ir.Node | None = None
        for condition in self.conditions:
            if condition.is_constant:
                if not condition.attribute.number:
                    return
                continue
            mask = a.both(mask, condition)
        parts = (self.use.value,) if self.use.guard is None else (self.use.value, self.use.guard)
        value, *guard = self.owner.replaced(parts, replacement, clamped=mask is not None)
        mask = a.both(mask, guard[0] if guard else None)
        yield self.owner.sum_over(rest, a.where(mask, value))

    def padded(self, replacement: dict[ir.BoundVariable, ir.Node], is_summed: bool) -> ir.Node | None:
        """The value without a mask, if it is a product of reads of which one can be 0 outside: that is read padded.

        So a convolution's gradient is a convolution, at the same speed. What is read once needs no padded copy.
        """
        masked = {v for v in self.solved if v in self.masked}
        if not masked or self.has_other_conditions or self.divided or self.use.guard is not None:
            return None
        factors = factors_of(self.use.value)
        if factors is None:
            return None
        originals = {new: old for old, new in self.renamed.items()}
        wanted = {originals[v] for v in masked}
        chosen = next((f for f in factors if self.can_pad(f, wanted)), None)
        if chosen is None:
            return None
        indices = self.owner.replaced(chosen.inputs[1:], replacement)
        hull = [index_bounds(index) for index in indices]
        ranges = tuple(ir.Range(b[0], b[1] + 1) for b in hull if b is not None)
        size, own = math.prod(r.size for r in ranges), math.prod(v.range.size for v in domain(chosen.inputs[0]))
        if len(ranges) < len(hull) or size > 2 * own + 1024:
            return None
        new = tuple(ir.BoundVariable("ijkmnp"[k % 6], "int", r) for k, r in enumerate(ranges))
        places = tuple(map(self.dag.bound_variable, new))
        inner = self.dag.access(chosen.inputs[0], places, ("zero",) * len(places))
        type_ = FunctionType(Scalar(chosen.type), (INT,) * len(new), True)
        function = self.dag.intern("let", type_, (self.dag.function(new, (inner,), type_),))
        value = self.dag.access(function, indices, (None,) * len(indices))
        if not is_summed:
            value = self.dag.access(chosen.inputs[0], indices, ("zero",) * len(indices))
        for factor in self.owner.replaced(tuple(f for f in factors if f is not chosen), replacement, clamped=True):
            value = self.algebra.op("*", value, factor)
        return value

    def can_pad(self, factor: ir.Node, wanted: set[ir.BoundVariable]) -> bool:
        """Whether a factor reads an evaluated function at each of these variables, over just their ranges."""
        if not isinstance(factor.attribute, ir.Access) or any(factor.attribute.borders):
            return False
        function = factor.inputs[0]
        if function.op != "let" or function.free_variables or ir.without_lets(function).op != "function":
            return False
        if not isinstance(ir.without_lets(function).attribute, tuple):
            return False
        pairs = zip(factor.inputs[1:], domain(function), strict=True)
        read = {i.attribute for i, v in pairs if i.op == "variable" and same_range(i.attribute, v)}
        return wanted <= read


def domain(function: ir.Node) -> Context:
    """The parameters of a function of bound variables, inside of lets."""
    return ir.without_lets(function).attribute


def same_range(a: ir.BoundVariable, b: ir.BoundVariable) -> bool:
    """Whether two variables run over the same indices."""
    return (a.range.low, a.range.high) == (b.range.low, b.range.high)


def factors_of(value: ir.Node) -> list[ir.Node] | None:
    """The factors of a product of reads and constants; None for other values."""
    factors, stack = [], [value]
    while stack:
        node = stack.pop()
        if node.op == "apply" and node.attribute == "*":
            stack += reversed(node.inputs)
        elif node.op == "scalar" or isinstance(node.attribute, ir.Access):
            factors.append(node)
        else:
            return None
    return factors


def substituted(form: Affine, values: dict[ir.BoundVariable, Affine]) -> Affine:
    """A form with variables replaced by forms."""
    result = Affine((), form.constant, form.is_known)
    for variable, coefficient in form.terms:
        result = result.add(values.get(variable, Affine(((variable, 1),), 0)).scale(coefficient))
    return result
