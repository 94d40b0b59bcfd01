"""Transposes reads of functions: computes the contribution of a read to the adjoint of each element.

Reverse mode (reverse.py) is the caller. A read at affine indices (`a(i + k)`, `a(2 * i)`, border modes too) is
inverted: each index equation is solved for one bound variable, and the contribution is a sum over the remaining ones,
which reads and never writes. Reads at other indices become sums by key, in the order of the points (ir/primitives.py).
"""

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, Context, NoDerivative, Nodes
from renderer.cdollar.gradients.rewrites import renamed
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import Affine, affine, bordered_index, index_bounds, value_bounds
from renderer.cdollar.ir.passes import alpha_rename, open_inputs
from renderer.cdollar.ir.primitives import primitive

MAX_IMAGES = 6  # copies of an element that a read reaches under the border modes wrap and mirror


class FunctionRead(NamedTuple):
    """A read of a function, and its contribution `value` to the element that is read, where `guard` holds.

    The contribution is an expression over the bound variables of `context`.
    """

    context: Context
    guard: ir.Node | None
    value: ir.Node
    read: ir.Node  # its inputs are the function and the indices, its attribute the Access


class ReadImage(NamedTuple):
    """The elements y in `range` are read where the index is sign * y + offset.

    `edge` is "below" or "above" for the indices that the border mode clamp moves to the first or last element.
    """

    range: ir.Range
    sign: int = 1
    offset: int = 0
    edge: str = ""


Images = tuple[ReadImage, ...]  # one for each dimension


def read_images(form: Affine, range_: ir.Range, border: str | None) -> list[ReadImage] | None:
    """The images of a dimension's elements that an index reads under a border mode; None if there are too many."""
    bounds = value_bounds(form)
    if bounds is None:
        return [ReadImage(range_)] if border in (None, "zero") else None
    low, size = range_.low, range_.size
    period = 2 * size if border == "mirror" else size
    periods = range(1)
    if border in ("wrap", "mirror"):
        periods = range((bounds[0] - low) // period, (bounds[1] - low) // period + 1)
    if len(periods) > MAX_IMAGES:
        return None
    signs_and_offsets = [(1, period * t) for t in periods]
    if border == "mirror":
        signs_and_offsets += [(-1, 2 * low + period * (t + 1) - 1) for t in periods]
    images = []
    for sign, offset in signs_and_offsets:  # keep the images that the index reaches
        ends = sorted(sign * (end - offset) for end in bounds)
        reached = ir.Range(max(low, ends[0]), max(low, min(range_.high, ends[1] + 1)))
        if reached.size:
            images.append(ReadImage(reached, sign, offset))
    if border == "clamp" and bounds[0] < low:
        images.append(ReadImage(ir.Range(low, low + 1), edge="below"))
    if border == "clamp" and bounds[1] >= range_.high:
        images.append(ReadImage(ir.Range(range_.high - 1, range_.high), edge="above"))
    return images


class Transposer:
    """Transposes the reads of functions in one program."""

    def __init__(self, dag: ir.Dag):
        self.dag, self.algebra = dag, Algebra(dag)

    def terms(self, use: FunctionRead, targets: Context) -> Iterator[ir.Node]:
        """The terms of a read's contribution to the element at `targets`, the variables over the function's domain.

        Raises NoDerivative.
        """
        if any(not isinstance(v.range, ir.Range) for v in use.context):
            raise NoDerivative("a bound variable has no finite range", self.dag.spans.get(use.read))
        if any(v.range.size == 0 for v in (*use.context, *targets)):
            return
        forms = [affine(index) for index in use.read.inputs[1:]]
        affine_forms = [f for f in forms if f is not None and f.is_known]
        if len(affine_forms) == len(forms):
            triples = zip(affine_forms, targets, use.read.attribute.borders, strict=True)
            images = [read_images(form, target.range, border) for form, target, border in triples]
            known = [i for i in images if i is not None]
            if len(known) == len(images):
                chosen = [(self.reached_variables(targets, images), images) for images in product(*known)]
                inversions = [Inversion(self, use, affine_forms, *pair) for pair in chosen]
                if all(i.is_possible for i in inversions):
                    for inversion in inversions:
                        for term in inversion.terms():
                            yield self.padded_read(term, inversion.targets, targets)
                    return
        yield self.scatter_by_key(use, targets)

    def reached_variables(self, targets: Context, images: Images) -> Context:
        """The targets; new variables over the image if in some dimension it holds at most half of the elements."""
        ranges = [image.range for image in images]
        if all(2 * r.size > t.range.size for r, t in zip(ranges, targets, strict=True)):
            return targets
        return tuple(ir.BoundVariable(t.name, t.type, r) for r, t in zip(ranges, targets, strict=True))

    def padded_read(self, term: ir.Node, subset: Context, targets: Context) -> ir.Node:
        """A term over `subset` as a term over `targets`: an array, read with border mode zero where ranges differ."""
        if subset is targets:
            return term
        function = self.dag.abstraction(subset, alpha_rename(self.dag, (term,)), is_array=True)
        if function.free_variables:
            raise NoDerivative("a border mode depends on a bound variable outside")
        function = self.dag.intern("let", function.type, (function,))
        borders = tuple(None if same_range(p, t) else "zero" for p, t in zip(subset, targets, strict=True))
        return self.dag.access(function, tuple(map(self.dag.bound_variable, targets)), borders)

    # Sums by key

    def scatter_by_key(self, use: FunctionRead, targets: Context) -> ir.Node:
        """The contribution of a read at any indices: sums over the points whose index is the element's position."""
        indices = use.read.inputs[1:]
        needed = frozenset().union(*(i.free_variables for i in indices)) & frozenset(use.context)
        if any(v.type != "int" for v in needed):
            raise NoDerivative("an index depends on a variable that is not int", self.dag.spans.get(use.read))
        batch = tuple(v for v in use.context if v in needed)
        value = self.summed_contribution(use, batch)
        linear = self.row_major_position([self.dag.bound_variable(t) for t in targets], targets)
        if not batch:
            is_here = self.algebra.compare("==", self.element_key(use, targets), linear)
            return self.algebra.where(is_here, value)
        new, bodies = renamed(self.dag, (self.element_key(use, targets), value), batch)
        if any(body.free_variables - frozenset(new) for body in bodies):
            reason = "a read at computed indices depends on a bound variable outside"
            raise NoDerivative(reason, self.dag.spans.get(use.read))
        functions = [self.dag.abstraction(new, (b,)) for b in bodies]
        size = math.prod(target.range.size for target in targets)
        sums = primitive(self.dag, "scatter_add", (ir.Range(0, size),), value.type, *functions)
        element = self.dag.access(sums, (linear,))
        if use.read in self.dag.spans:
            self.dag.spans.setdefault(element, self.dag.spans[use.read])
        return element

    def row_major_position(self, indices: list[ir.Node], targets: Context) -> ir.Node:
        """The row-major position of the element at `indices`, from 0."""
        result: ir.Node | None = None
        for index, target in zip(indices, targets, strict=True):
            if index.type != "int":
                index = self.dag.apply("convert", "int", index)
            offset = self.algebra.op("-", index, self.algebra.number(target.range.low, "int"))
            if result is not None:
                offset = self.algebra.op("+", self.algebra.times(result, target.range.size), offset)
            result = offset
        return result if result is not None else self.algebra.number(0, "int")

    def element_key(self, use: FunctionRead, targets: Context) -> ir.Node:
        """The row-major position of the element that is read; -1 where the read contributes nothing.

        The key reads the element as the program does, so that an index outside of the domain is an error.
        """
        indices, inside = [], use.guard
        for index, target, border in zip(use.read.inputs[1:], targets, use.read.attribute.borders, strict=True):
            moved, is_inside = self.bordered(index, target.range, border)
            indices.append(moved)
            inside = self.algebra.both(inside, is_inside)
        offset = self.row_major_position(indices, targets)
        if not any(use.read.attribute.borders):
            read = self.dag.component(use.read, 0)
            # Both arms are the offset: the selection only makes the key depend on the read, which reports the error.
            checked = self.algebra.compare("==", read, read)
            offset = self.dag.apply("select", "int", checked, offset, offset)
        return self.algebra.select(inside, offset, self.algebra.number(-1, "int"))

    def bordered(self, index: ir.Node, range_: ir.Range, border: str | None) -> tuple[ir.Node, ir.Node | None]:
        """The index that a border mode reads, and the condition under which it reads an element (None: always)."""

        def number(value: int) -> ir.Node:
            return self.algebra.number(value, index.type)

        if border == "zero":
            ends = (">=", number(range_.low)), ("<=", number(range_.high - 1))
            return index, self.algebra.both(*(self.algebra.compare(name, index, end) for name, end in ends))
        return bordered_index(self.algebra.op, number, index, range_, border) if border else index, None

    # Expressions

    def summed_contribution(self, use: FunctionRead, wanted: Context) -> ir.Node:
        """The contribution of a read over the `wanted` variables, summed over the other variables of its context."""
        rest = tuple(v for v in use.context if v not in wanted)
        value = self.algebra.where(use.guard, use.value)
        if not rest:
            return value
        new, (value,) = renamed(self.dag, (value,), rest, reduced=True)
        return self.sum_over(new, value)

    def sum_over(self, variables: Iterable[ir.BoundVariable], value: ir.Node) -> ir.Node:
        """The sum of a value over variables; the size of a variable that does not occur in the value is a factor."""
        used = tuple(v for v in variables if v in value.free_variables)
        count = math.prod(v.range.size for v in variables if v not in used)
        if used:
            value = self.dag.intern("reduce", value.type, (value,), (ir.Reduction("+"), used))
        return self.algebra.times(value, count)

    def clamped(self, nodes: Nodes) -> Nodes:
        """Nodes whose reads at variable indices are clamped to the domain; a mask around the nodes drops the values."""

        def change(node: ir.Node, inputs: Nodes) -> ir.Node:
            attribute = None
            if isinstance(node.attribute, ir.Access) and not inputs[0].free_variables:
                borders = tuple(b or "clamp" for b in node.attribute.borders)
                if borders != node.attribute.borders and any(i.free_variables for i in inputs[1:]):
                    attribute = ir.Access(borders)
            return ir.with_inputs(self.dag, node, inputs, attribute)

        return ir.rewrite(nodes, change, open_inputs)


class Inversion:
    """A read at affine indices, solved for one context variable a dimension, for one image of each dimension.

    Variables that are solved for become forms of the targets and the other variables, which are summed over.
    """

    def __init__(self, parent: Transposer, use: FunctionRead, forms: list[Affine], targets: Context, images: Images):
        self.transposer, self.algebra, self.dag = parent, parent.algebra, parent.dag
        self.use, self.targets = use, targets
        self.renamed = {v: ir.BoundVariable(v.name, v.type, v.range, reduced=True) for v in use.context}
        self.solved: dict[ir.BoundVariable, Affine] = {}  # by renamed variable
        self.divided: dict[ir.BoundVariable, tuple[Affine, int]] = {}  # variable = form / number
        self.conditions: list[ir.Node] = []
        self.masked: set[ir.BoundVariable] = set()  # solved variables with values that may leave their range
        self.has_other_conditions = False
        self.is_possible = True
        rename = {v: Affine(((new, 1),), 0) for v, new in self.renamed.items()}
        pending = []
        for form, target, image in zip(forms, targets, images, strict=True):
            index = substituted(form, rename)
            if image.edge:
                self.add_edge_condition(index, target, image)
            else:
                wanted = Affine(((target, image.sign),), image.offset)
                pending.append(index.add(wanted.scale(-1)))
        # Dimensions with few variables first: they leave least to choose.
        for form in sorted(pending, key=lambda f: len(self.context_terms(f))):
            self.solve(substituted(form, self.solved))
        forms = [*self.solved.values(), *(substituted(f, self.solved) for f, _ in self.divided.values())]
        self.is_possible &= not any(v in self.divided for f in forms for v, _ in f.terms)

    def context_terms(self, form: Affine) -> list[tuple[ir.BoundVariable, int]]:
        """The terms of a form that belong to the context's variables."""
        return [(v, c) for v, c in form.terms if v in set(self.renamed.values())]

    def add_edge_condition(self, form: Affine, target: ir.BoundVariable, image: ReadImage) -> None:
        """Adds the conditions under which an index clamps to the first or the last element."""
        range_, below = target.range, image.edge == "below"
        edge = self.algebra.number(range_.low if below else range_.high - 1, target.type)
        self.conditions.append(self.algebra.compare("==", self.dag.bound_variable(target), edge))
        limit = range_.low - 1 if below else range_.high
        rest = form.add(Affine((), -limit)) if not below else form.scale(-1).add(Affine((), limit))
        self.narrow(rest)
        self.require_nonnegative(rest)
        self.has_other_conditions = True

    def narrow(self, form: Affine) -> None:
        """Narrows the range of each variable of a form to where it can be at least 0."""
        for variable, coefficient in self.context_terms(form):
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
        terms = self.context_terms(form)
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
        self.require_nonnegative(rest.add(Affine((), -pivot.range.low)))
        self.require_nonnegative(rest.scale(-1).add(Affine((), pivot.range.high - 1)))
        if len(self.conditions) > count:
            self.masked.add(pivot)

    def require_nonnegative(self, form: Affine) -> None:
        """Adds the condition form >= 0, unless it always holds."""
        bounds = value_bounds(form)
        if bounds is None or bounds[0] < 0:
            self.conditions.append(self.algebra.compare(">=", self.node(form), self.algebra.number(0, "int")))

    def node(self, form: Affine) -> ir.Node:
        """An affine form as an int expression."""
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

    def terms(self) -> Iterator[ir.Node]:
        """The sum over the variables that were not solved for; nothing if it is 0."""
        a = self.algebra
        nodes = {v: self.node(f) for v, f in self.solved.items()}
        for variable, (form, divisor) in self.divided.items():
            form = substituted(form, self.solved)
            dividend, number = self.node(form), a.number(divisor, "int")
            self.conditions.append(a.compare("==", a.op("%", dividend, number), a.number(0, "int")))
            low, high = variable.range.low, variable.range.high - 1
            self.require_nonnegative(form.add(Affine((), -low * divisor)))
            self.require_nonnegative(form.scale(-1).add(Affine((), high * divisor)))
            nodes[variable] = a.op("/", dividend, number)
        rest = [v for v in self.renamed.values() if v not in nodes]
        if any(v.range.size == 0 for v in rest):
            return
        replacement = {v: nodes.get(n, self.dag.bound_variable(n)) for v, n in self.renamed.items()}
        padded = self.padded(replacement, is_summed=any(v.range.size > 1 for v in rest))
        if padded is not None:
            yield self.transposer.sum_over(rest, padded)
            return
        mask: ir.Node | None = None
        for condition in self.conditions:
            if condition.is_constant:
                if not condition.attribute.number:
                    return
                continue
            mask = a.both(mask, condition)
        values = (self.use.value,) if self.use.guard is None else (self.use.value, self.use.guard)
        value, *guard = ir.substitute(self.dag, values, replacement)
        if mask is not None:
            value, *guard = self.transposer.clamped((value, *guard))
        mask = a.both(mask, guard[0] if guard else None)
        yield self.transposer.sum_over(rest, a.where(mask, value))

    def padded(self, replacement: dict[ir.BoundVariable, ir.Node], is_summed: bool) -> ir.Node | None:
        """The value without a mask, if it is a product of reads and one factor can be read as 0 outside of its domain.

        So the gradient of a convolution is a convolution, at the same speed. A factor that is read more than once is
        copied into an array padded with zeros. None if there is no such factor.
        """
        masked = {v for v in self.solved if v in self.masked}
        if not masked or self.has_other_conditions or self.divided or self.use.guard is not None:
            return None
        factors = product_factors(self.use.value)
        if factors is None:
            return None
        originals = {new: old for old, new in self.renamed.items()}
        wanted = {originals[v] for v in masked}
        chosen = next((f for f in factors if self.can_pad(f, wanted)), None)
        if chosen is None:
            return None
        indices = ir.substitute(self.dag, chosen.inputs[1:], replacement)
        hull = [index_bounds(index) for index in indices]
        ranges = tuple(ir.Range(b[0], b[1] + 1) for b in hull if b is not None)
        size, original = math.prod(r.size for r in ranges), math.prod(v.range.size for v in domain(chosen.inputs[0]))
        if len(ranges) < len(hull) or size > 2 * original + 1024:
            return None
        new = tuple(ir.BoundVariable("ijkmnp"[k % 6], "int", r) for k, r in enumerate(ranges))
        points = tuple(map(self.dag.bound_variable, new))
        inner = self.dag.access(chosen.inputs[0], points, ("zero",) * len(points))
        function = self.dag.abstraction(new, (inner,), is_array=True)
        value = self.dag.access(self.dag.intern("let", function.type, (function,)), indices)
        if not is_summed:
            value = self.dag.access(chosen.inputs[0], indices, ("zero",) * len(indices))
        others = ir.substitute(self.dag, tuple(f for f in factors if f is not chosen), replacement)
        for factor in self.transposer.clamped(others):
            value = self.algebra.op("*", value, factor)
        return value

    def can_pad(self, factor: ir.Node, wanted: set[ir.BoundVariable]) -> bool:
        """True if a factor reads an evaluated function at each `wanted` variable, over exactly the variable's range."""
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
    variables: Context = ir.without_lets(function).attribute
    return variables


def same_range(a: ir.BoundVariable, b: ir.BoundVariable) -> bool:
    """True if two variables run over the same indices."""
    return (a.range.low, a.range.high) == (b.range.low, b.range.high)


def product_factors(value: ir.Node) -> list[ir.Node] | None:
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
