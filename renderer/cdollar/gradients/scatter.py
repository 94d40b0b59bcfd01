"""Transposes reads of functions: what reads at indices passes on, as a function of the element that is read.

A read at affine indices (`a(i + k)`, `a(2 * i)`, border modes too) is inverted: one bound variable for each dimension
is solved for, which makes a sum over the others that only reads. Reads at other indices become sums by key, in the
order of the points (ir/primitives.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from renderer.cdollar.gradients.derivatives import NoDerivative
from renderer.cdollar.gradients.inversion import Context, Image, Inversion, Rewriter, Use, images_of, same_range
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import affine
from renderer.cdollar.ir.passes import alpha_rename
from renderer.cdollar.ir.primitives import primitive
from renderer.cdollar.ir.types import INT, FunctionType, Scalar


class Transposer(Rewriter):
    """Transposes uses of functions in one program."""

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
            known = [i for i in images if i is not None]
            if len(known) == len(images):
                parts = [(self.part_of(targets, each), each) for each in product(*known)]
                inversions = [Inversion(self, use, affine_forms, own, each) for own, each in parts]
                if all(i.is_possible for i in inversions):
                    for inversion in inversions:
                        for term in inversion.term():
                            yield self.read_part(term, inversion.targets, targets)
                    return
        yield self.by_key(use, targets)

    def part_of(self, targets: Context, images: tuple[Image, ...]) -> Context:
        """The targets, or new variables over the part of them that images reach, if that is much less."""
        ranges = [image.range for image in images]
        if all(2 * r.size > t.range.size for r, t in zip(ranges, targets, strict=True)):
            return targets
        return tuple(ir.BoundVariable(t.name, t.type, r) for r, t in zip(ranges, targets, strict=True))

    def read_part(self, term: ir.Node, part: Context, targets: Context) -> ir.Node:
        """A term over a part of the domain as one over all of it: a function that is 0 elsewhere."""
        if part is targets:
            return term
        type_ = FunctionType(Scalar(term.type), tuple(Scalar(v.type) for v in part), True)
        (body,) = alpha_rename(self.dag, (term,))
        function = self.dag.function(part, (body,), type_)
        if function.free_variables:
            raise NoDerivative("a border mode depends on a bound variable outside")
        function = self.dag.intern("let", type_, (function,))
        borders = tuple(None if same_range(p, t) else "zero" for p, t in zip(part, targets, strict=True))
        return self.dag.access(function, tuple(map(self.dag.bound_variable, targets)), borders)

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

    def access(self, function: ir.Node, indices: tuple[ir.Node, ...], like: ir.Node) -> ir.Node:
        """A function at indices; errors are at the span of `like`."""
        node = self.dag.access(function, indices, (None,) * len(indices))
        if like in self.dag.spans:
            self.dag.spans.setdefault(node, self.dag.spans[like])
        return node
