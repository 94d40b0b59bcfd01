"""Transposes reads of functions: what reads at indices passes on, as a function of the element that is read.

A read at affine indices (`a(i + k)`, `a(2 * i)`, border modes too) is inverted: one bound variable for each dimension
is solved for, which makes a sum over the others that only reads. Reads at other indices become sums by key, in the
order of the points (ir/primitives.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, NoDerivative
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import Affine, affine, value_bounds
from renderer.cdollar.ir.passes import open_inputs
from renderer.cdollar.ir.primitives import primitive
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
    """One way to read element y of a dimension: where the index is sign * y + offset.

    `edge` is "below" or "above" for the indices that the border mode clamp moves to the first or last element.
    """

    sign: int = 1
    offset: int = 0
    edge: str = ""


def images_of(form: Affine, range_: ir.Range, border: str | None) -> list[Image] | None:
    """The images of a dimension's elements under a border mode; None if there are too many."""
    bounds = value_bounds(form)
    if border in (None, "zero"):
        return [Image()]
    if bounds is None:
        return None
    low, size = range_.low, range_.size
    is_below, is_above = bounds[0] < low, bounds[1] >= range_.high
    if border == "clamp" or not size:
        return [Image(), *[Image(edge="below")] * is_below, *[Image(edge="above")] * is_above]
    period = size if border == "wrap" else 2 * size
    first, last = (bounds[0] - low) // period, (bounds[1] - low) // period
    if last - first >= MAX_IMAGES:
        return None
    images = [Image(1, period * t) for t in range(first, last + 1)]
    if border == "mirror":
        images += [Image(-1, 2 * low + period * (t + 1) - 1) for t in range(first, last + 1)]
    return images


class Transposer:
    """Transposes uses of functions in one program."""

    def __init__(self, dag: ir.Dag):
        self.dag, self.algebra = dag, Algebra(dag)

    def terms(self, use: Use, targets: Context) -> Iterator[ir.Node]:
        """The terms whose sum is what a use passes on to the element at `targets`, variables over the domain."""
        if any(not isinstance(v.range, ir.Range) for v in use.context):
            raise NoDerivative("a bound variable has no finite range", self.dag.spans.get(use.read))
        if any(v.range.size == 0 for v in (*use.context, *targets)):
            return
        forms = [affine(index) for index in use.read.inputs[1:]]
        affine_forms = [f for f in forms if f is not None and f.is_known]
        if len(affine_forms) == len(forms):
            triples = zip(affine_forms, targets, use.read.attribute.borders, strict=True)
            images = [images_of(form, target.range, border) for form, target, border in triples]
            chosen = product(*(i for i in images if i is not None)) if None not in images else ()
            inversions = [Inversion(self, use, affine_forms, targets, each) for each in chosen]
            if inversions and all(i.is_possible for i in inversions):
                for inversion in inversions:
                    yield from inversion.term()
                return
        yield self.by_key(use, targets)

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

    # Sums by key

    def by_key(self, use: Use, targets: Context) -> ir.Node:
        """A use at any indices, as sums by key."""
        indices = use.read.inputs[1:]
        needed = frozenset().union(*(i.free_variables for i in indices)) & frozenset(use.context)
        if any(v.type != "int" for v in needed):
            raise NoDerivative("an index depends on a variable that is not int", self.dag.spans.get(use.read))
        batch = tuple(v for v in use.context if v in needed)
        value = self.collapsed(use, batch)
        linear = self.linear([self.dag.bound_variable(t) for t in targets], targets)
        if not batch:
            is_here = self.algebra.compare("==", self.key(use, targets), linear)
            return self.algebra.where(is_here, value)
        new = tuple(self.fresh(v, False) for v in batch)
        bodies = self.replaced(
            (self.key(use, targets), value), dict(zip(batch, map(self.dag.bound_variable, new), strict=True))
        )
        if any(body.free_variables - frozenset(new) for body in bodies):
            raise NoDerivative(
                "a read at computed indices depends on a bound variable outside", self.dag.spans.get(use.read)
            )
        parameters = (INT,) * len(new)
        functions = [self.dag.function(new, (b,), FunctionType(Scalar(b.type), parameters)) for b in bodies]
        size = 1
        for target in targets:
            size *= target.range.size
        sums = primitive(self.dag, "scatter_add", (ir.Range(0, size),), value.type, *functions)
        return self.access(sums, (linear,), use.read)

    def linear(self, indices: list[ir.Node], targets: Context) -> ir.Node:
        """The row-major position of an element."""
        result: ir.Node | None = None
        for index, target in zip(indices, targets, strict=True):
            if index.type != "int":
                index = self.dag.apply("convert", "int", index)
            place = self.algebra.op("-", index, self.algebra.number(target.range.low, "int"))
            if result is not None:
                place = self.algebra.op("+", self.algebra.times(result, target.range.size), place)
            result = place
        return result if result is not None else self.algebra.number(0, "int")

    def key(self, use: Use, targets: Context) -> ir.Node:
        """The position of the element that is read; -1 where nothing is passed on.

        The condition reads the element as the program does, so that an index outside of the domain is an error.
        """
        indices, inside = [], use.guard
        for index, target, border in zip(use.read.inputs[1:], targets, use.read.attribute.borders, strict=True):
            moved, is_inside = self.bordered(index, target.range, border)
            indices.append(moved)
            inside = self.algebra.both(inside, is_inside)
        place = self.linear(indices, targets)
        if not any(use.read.attribute.borders):
            read = self.dag.component(use.read, 0)
            checked = self.algebra.compare("==", read, read)
            place = self.dag.apply("select", "int", checked, place, place)
        return self.algebra.select(inside, place, self.algebra.number(-1, "int"))

    def bordered(self, index: ir.Node, range_: ir.Range, border: str | None) -> tuple[ir.Node, ir.Node | None]:
        """The index that a border mode reads, and where it reads at all."""
        a, type_ = self.algebra, index.type
        low, last, size = (a.number(n, type_) for n in (range_.low, range_.high - 1, range_.size))
        if border == "zero":
            inside = a.both(a.compare(">=", index, low), a.compare("<=", index, last))
            return index, inside
        if border == "clamp":
            return a.op("min", a.op("max", index, low), last), None
        if border in ("wrap", "mirror"):
            period = size if border == "wrap" else a.number(2 * range_.size, type_)
            offset = a.op("-", index, low)
            offset = a.op("%", a.op("+", a.op("%", offset, period), period), period)
            if border == "mirror":
                offset = a.op("min", offset, a.op("-", a.number(2 * range_.size - 1, type_), offset))
            return a.op("+", offset, low), None
        return index, None

    # Expressions

    def collapsed(self, use: Use, wanted: Context) -> ir.Node:
        """What a use passes on, summed over the variables of its context that are not wanted."""
        rest = [v for v in use.context if v not in wanted]
        value = self.algebra.where(use.guard, use.value)
        if not rest:
            return value
        new = [self.fresh(v) for v in rest]
        (value,) = self.replaced((value,), dict(zip(rest, map(self.dag.bound_variable, new), strict=True)))
        return self.sum_over(new, value)

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

    def access(self, function: ir.Node, indices: tuple[ir.Node, ...], like: ir.Node) -> ir.Node:
        """A function at indices; errors are at the span of `like`."""
        node = self.dag.access(function, indices, (None,) * len(indices))
        if like in self.dag.spans:
            self.dag.spans.setdefault(node, self.dag.spans[like])
        return node


class Inversion:
    """One image of each dimension of a use at affine indices: solved for a variable a dimension."""

    def __init__(
        self, transposer: Transposer, use: Use, forms: list[Affine], targets: Context, images: tuple[Image, ...]
    ) -> None:
        self.owner, self.algebra, self.dag = transposer, transposer.algebra, transposer.dag
        self.use = use
        self.renamed = {v: transposer.fresh(v) for v in use.context}
        self.solved: dict[ir.BoundVariable, Affine] = {}  # by renamed variable
        self.divided: dict[ir.BoundVariable, tuple[Affine, int]] = {}  # those that are a form over a number
        self.conditions: list[ir.Node] = []
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
            self.conditions.append(self.algebra.compare("==", self.node(form), self.algebra.number(0, "int")))
            return
        pivot, coefficient = max(terms, key=lambda t: (t[0].range.size, -abs(t[1])))
        rest = Affine(tuple(t for t in form.terms if t[0] is not pivot), form.constant)
        rest = rest.scale(-1 if coefficient > 0 else 1)
        if abs(coefficient) > 1:
            self.divided[pivot] = rest, abs(coefficient)
            return
        self.solved = {v: substituted(f, {pivot: rest}) for v, f in self.solved.items()} | {pivot: rest}
        self.at_least_zero(rest.add(Affine((), -pivot.range.low)))
        self.at_least_zero(rest.scale(-1).add(Affine((), pivot.range.high - 1)))

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
        mask: ir.Node | None = None
        for condition in self.conditions:
            if condition.is_constant:
                if not condition.attribute.number:
                    return
                continue
            mask = a.both(mask, condition)
        replacement = {v: nodes.get(n, self.dag.bound_variable(n)) for v, n in self.renamed.items()}
        parts = (self.use.value,) if self.use.guard is None else (self.use.value, self.use.guard)
        value, *guard = self.owner.replaced(parts, replacement, clamped=mask is not None)
        mask = a.both(mask, guard[0] if guard else None)
        yield self.owner.sum_over(rest, a.where(mask, value))


def substituted(form: Affine, values: dict[ir.BoundVariable, Affine]) -> Affine:
    """A form with variables replaced by forms."""
    result = Affine((), form.constant, form.is_known)
    for variable, coefficient in form.terms:
        result = result.add(values.get(variable, Affine(((variable, 1),), 0)).scale(coefficient))
    return result
