"""Transposes reads of functions: computes the contribution of a read to the adjoint of each element.

Reverse mode (reverse.py) is the caller. An element of a function is the value at one point of the function's domain;
its adjoint is the derivative of the differentiated number by the element. A target is a bound variable over one
dimension of the function that is read: together the targets are the indices of the element whose adjoint is wanted.
A read at affine indices (`a(i + k)`, `a(2 * i)`, border modes too) is inverted (class Inversion): each index equation
is solved for one bound variable, and the contribution is a sum over the remaining variables, which reads and never
writes. Reads at other indices become sums by key, in the order of the points (ir/primitives.py).

Example: `b(i) = sum(a(2 * i + k) * w(k))` for i from 0 to 99 and k from 0 to 4. The read of a has the context (i, k)
and the value db(i) * w(k), where db is the adjoint of b. The element of a at the target y is read where 2 * i + k = y.
This is solved for i, whose range is the larger one: i = (y - k) / 2. The contribution to the adjoint of a at y is
    sum over k of (db((y - k) / 2) * w(k) if (y - k) % 2 == 0 and y - k >= 0 and 198 - (y - k) >= 0, else 0).
Without the factor 2, i = y - k, and a mask is not needed if db is read with border mode zero (Inversion.padded).
"""

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, Context, NoDerivative, Nodes
from renderer.cdollar.gradients.rewrites import renamed
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import Affine, affine, bordered_index, index_bounds, value_bounds, variable_form
from renderer.cdollar.ir.contraction import product_factors
from renderer.cdollar.ir.passes import alpha_rename, is_computed_function, open_inputs
from renderer.cdollar.ir.primitives import primitive

MAX_IMAGES = 6  # per dimension: indices that wrap or mirror moves to the same element; more become sums by key
MAX_PADDING = 1024  # elements by which an array padded with zeros may exceed twice the size of the original


class FunctionRead(NamedTuple):
    """A read of a function, and its contribution `value` to the adjoint of the element that is read.

    `value` is an expression over the bound variables of `context`; it counts where the condition `guard` holds (None:
    everywhere).
    """

    context: Context
    guard: ir.Node | None
    value: ir.Node
    read: ir.Node  # inputs: the function and the indices; attribute: the Access


class ReadImage(NamedTuple):
    """One way in which an index reaches a dimension: the elements y in `range` are read where it is sign * y + offset.

    A read without a border mode has one image (sign 1, offset 0). Under wrap each period is an image, with another
    offset; under mirror each period is two, one of them with sign -1. Under clamp, `edge` is "below" or "above" for the
    indices that the mode moves to the first or the last element; sign and offset are then unused.

    Example: a range 0..3 under mirror is read in the order 0 1 2 2 1 0 0 1 2 ... The index 3 reads element 2, 4 reads 1
    and 5 reads 0: index = -y + 5, an image with sign -1 and offset 5. The indices 6 to 8 are the image y + 6.
    """

    range: ir.Range
    sign: int = 1
    offset: int = 0
    edge: str = ""


Images = tuple[ReadImage, ...]  # a ReadImage for each dimension of the array


def read_images(form: Affine, range_: ir.Range, border: str | None) -> list[ReadImage] | None:
    """The images of a dimension's elements that an index reads under a border mode.

    None if there are more than MAX_IMAGES, or if a border mode needs bounds of the index and it has none.
    """
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
        ends = sorted(sign * (end - offset) for end in bounds)  # y = sign * (index - offset), as sign is 1 or -1
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

    def contributions(self, use: FunctionRead, targets: Context) -> Iterator[ir.Node]:
        """Yields expressions over `targets` whose sum is a read's contribution to the adjoint of the element there.

        An inverted read yields one for each combination of images of its dimensions, other reads yield one sum by key.
        Raises NoDerivative.
        """
        if any(not isinstance(v.range, ir.Range) for v in use.context):
            raise NoDerivative("a bound variable has no finite range", self.dag.spans.get(use.read))
        if any(v.range.size == 0 for v in (*use.context, *targets)):
            return
        inversions = self.inversions(use, targets)
        if inversions is None:
            yield self.scatter_by_key(use, targets)
            return
        for inversion in inversions:
            contribution = inversion.contribution()
            if contribution is not None:
                yield self.padded_read(contribution, inversion.targets, targets)

    def inversions(self, use: FunctionRead, targets: Context) -> "list[Inversion] | None":
        """An inversion for each choice of one image in every dimension; None if the read cannot be inverted."""
        forms = [form for form in map(affine, use.read.inputs[1:]) if form is not None and form.is_known]
        if len(forms) < len(targets):
            return None
        triples = zip(forms, targets, use.read.attribute.borders, strict=True)
        images = [read_images(form, target.range, border) for form, target, border in triples]
        known = [i for i in images if i is not None]
        if len(known) < len(images):
            return None
        chosen = [(self.reached_variables(targets, images), images) for images in product(*known)]
        inversions = [Inversion(self, use, forms, *pair) for pair in chosen]
        return inversions if all(inversion.is_possible for inversion in inversions) else None

    def reached_variables(self, targets: Context, images: Images) -> Context:
        """The targets; new variables over the images if one of these holds at most half of its dimension's elements.

        A small image, such as the two edges of clamp, is then computed at its elements only (padded_read).
        """
        ranges = [image.range for image in images]
        if all(2 * r.size > t.range.size for r, t in zip(ranges, targets, strict=True)):
            return targets
        return tuple(ir.BoundVariable(t.name, t.type, r) for r, t in zip(ranges, targets, strict=True))

    def padded_read(self, value: ir.Node, subset: Context, targets: Context) -> ir.Node:
        """A value over the variables `subset` as a value over `targets`, 0 outside of the ranges of `subset`.

        If they differ, the value becomes an array, read with border mode zero.
        """
        if subset is targets:
            return value
        function = self.dag.abstraction(subset, alpha_rename(self.dag, (value,)), is_array=True)
        if function.free_variables:
            raise NoDerivative("a border mode depends on a bound variable outside")
        function = self.dag.intern("let", function.type, (function,))
        borders = tuple(None if same_range(p, t) else "zero" for p, t in zip(subset, targets, strict=True))
        return self.dag.access(function, tuple(map(self.dag.bound_variable, targets)), borders)

    # Sums by key

    def scatter_by_key(self, use: FunctionRead, targets: Context) -> ir.Node:
        """The contribution of a read at any indices: sums over the points whose index is the element's position."""
        indices = use.read.inputs[1:]
        # the variables of the indices, over which the points are scattered; the sum over the others comes first
        needed = frozenset().union(*(i.free_variables for i in indices)) & frozenset(use.context)
        if any(v.type != "int" for v in needed):
            raise NoDerivative("an index depends on a variable that is not int", self.dag.spans.get(use.read))
        batch = tuple(v for v in use.context if v in needed)
        value = self.summed_contribution(use, batch)
        linear = self.row_major_position([self.dag.bound_variable(t) for t in targets], targets)
        if not batch:  # all points read one element
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

        Without border modes the key reads the element as the program does, so that an index outside of the domain is an
        error. A program's read has a border mode in all dimensions or in none (lowering/functions.py).
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
        new, (value,) = renamed(self.dag, (value,), rest, reduced=True)  # variables that a reduction binds
        return self.sum_over(new, value)

    def sum_over(self, variables: Iterable[ir.BoundVariable], value: ir.Node) -> ir.Node:
        """The sum of a value over variables; the size of a variable that does not occur in the value is a factor."""
        used = tuple(v for v in variables if v in value.free_variables)
        count = math.prod(v.range.size for v in variables if v not in used)
        if used:
            value = self.dag.intern("reduce", value.type, (value,), (ir.Reduction("+"), used))
        return self.algebra.times(value, count)

    def clamped(self, nodes: Nodes) -> Nodes:
        """Nodes whose reads at variable indices are clamped to the domain; a mask around the nodes drops the values.

        A function with free variables is computed where it is read: the reads in its body are clamped instead.
        """

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

    Variables that are solved for become affine forms of the targets and of the other variables, which are summed over.
    In the example at the top of this file, `a(2 * i + k)` with the target y:
    `renamed`: i and k -> fresh variables, as a sum may use each variable once; the entries below name the fresh ones.
    `solved`: variable -> form, for variables with coefficient 1 or -1. Empty here; {i: y - k} for `a(i + k)`.
    `divided`: variable -> (form, divisor), for larger coefficients. Here {i: (y - k, 2)}. No other form may contain a
    divided variable: then the inversion is not possible (`is_possible`), and the read becomes a sum by key.
    `conditions`: int comparisons that the targets and remaining variables must satisfy, as far as bounds do not already
    imply them. Here (y - k) % 2 == 0, y - k >= 0 and 198 - (y - k) >= 0; they make up the mask of the sum.
    `masked`: the solved variables whose form may leave their range, so that a condition keeps it inside. {i} for
    `a(i + k)`. `has_other_conditions`: some condition is not of this kind, so that padding cannot replace the mask.
    """

    def __init__(self, parent: Transposer, use: FunctionRead, forms: list[Affine], targets: Context, images: Images):
        self.transposer, self.algebra, self.dag = parent, parent.algebra, parent.dag
        self.use, self.targets = use, targets
        self.renamed = {v: ir.BoundVariable(v.name, v.type, v.range, reduced=True) for v in use.context}
        self.solved: dict[ir.BoundVariable, Affine] = {}
        self.divided: dict[ir.BoundVariable, tuple[Affine, int]] = {}
        self.conditions: list[ir.Node] = []
        self.masked: set[ir.BoundVariable] = set()
        self.has_other_conditions = False
        self.is_possible = True
        rename = {v: variable_form(new) for v, new in self.renamed.items()}
        equations: list[Affine] = []  # forms that must be 0: index - (sign * target + offset)
        for form, target, image in zip(forms, targets, images, strict=True):
            index = form.substitute(rename)
            if image.edge:
                self.add_edge_condition(index, target, image)
            else:
                equations.append(index.add(Affine(((target, -image.sign),), -image.offset)))
        # Dimensions with few variables first: they leave least to choose.
        for equation in sorted(equations, key=lambda f: len(self.context_terms(f))):
            self.solve(equation.substitute(self.solved))
        forms = [*self.solved.values(), *(f.substitute(self.solved) for f, _ in self.divided.values())]
        self.is_possible &= not any(v in self.divided for f in forms for v in f.variables)

    def context_terms(self, form: Affine) -> list[tuple[ir.BoundVariable, int]]:
        """The terms of a form that belong to the context's variables."""
        return [(v, c) for v, c in form.terms if v in self.renamed.values()]

    def add_edge_condition(self, form: Affine, target: ir.BoundVariable, image: ReadImage) -> None:
        """Adds the conditions under which an index clamps to the first or the last element of a target's dimension.

        They are: the target is that element, and the index `form` lies below or above the range.
        """
        range_, below = target.range, image.edge == "below"
        edge = self.algebra.number(range_.low if below else range_.high - 1, target.type)
        self.conditions.append(self.algebra.compare("==", self.dag.bound_variable(target), edge))
        limit = range_.low - 1 if below else range_.high
        distance = form.scale(-1).add(Affine((), limit)) if below else form.add(Affine((), -limit))
        self.narrow(distance)
        self.require_nonnegative(distance)
        self.has_other_conditions = True

    def narrow(self, form: Affine) -> None:
        """Narrows the range of each context variable of a form to the values for which the form can be at least 0.

        The sum then visits few of the points that the condition excludes. The range is set in place: the variables are
        the fresh ones of `renamed`, which only this inversion has, and dicts find them by identity.
        """
        for variable, coefficient in self.context_terms(form):
            others = value_bounds(form.without(variable))
            if others is None:
                continue
            low, high = variable.range.low, variable.range.high
            if coefficient > 0:  # coefficient * variable >= -others[1]
                low = max(low, -(others[1] // coefficient))
            else:
                high = min(high, others[1] // -coefficient + 1)
            variable.range = ir.Range(low, max(low, high))

    def solve(self, form: Affine) -> None:
        """Solves form = 0 for the variable that leaves the least to be summed over: the one with the largest range.

        If no variable is left in the form, form = 0 is a condition on the targets.
        """
        terms = self.context_terms(form)
        if any(v in self.divided for v, _ in terms) or any(v.type != "int" for v, _ in terms):
            self.is_possible = False
            return
        if not terms:
            self.has_other_conditions = True
            self.conditions.append(self.algebra.compare("==", self.node(form), self.algebra.number(0, "int")))
            return
        pivot, coefficient = max(terms, key=lambda t: (t[0].range.size, -abs(t[1])))
        solution = form.without(pivot).scale(-1 if coefficient > 0 else 1)  # abs(coefficient) * pivot = solution
        if abs(coefficient) > 1:
            self.divided[pivot] = solution, abs(coefficient)
            return
        self.solved = {v: f.substitute({pivot: solution}) for v, f in self.solved.items()} | {pivot: solution}
        count = len(self.conditions)
        self.require_nonnegative(solution.add(Affine((), -pivot.range.low)))
        self.require_nonnegative(solution.scale(-1).add(Affine((), pivot.range.high - 1)))
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

    def contribution(self) -> ir.Node | None:
        """The contribution over the targets: a sum over the variables that were not solved for; None if it is 0.

        To be called once: it adds the conditions of the divided variables.
        """
        a = self.algebra
        nodes = {v: self.node(f) for v, f in self.solved.items()}  # the node in place of each fresh variable
        for variable, (form, divisor) in self.divided.items():
            form = form.substitute(self.solved)
            dividend, number = self.node(form), a.number(divisor, "int")
            self.conditions.append(a.compare("==", a.op("%", dividend, number), a.number(0, "int")))
            low, high = variable.range.low, variable.range.high - 1
            self.require_nonnegative(form.add(Affine((), -low * divisor)))
            self.require_nonnegative(form.scale(-1).add(Affine((), high * divisor)))
            nodes[variable] = a.op("/", dividend, number)
        remaining = [v for v in self.renamed.values() if v not in nodes]
        if any(v.range.size == 0 for v in remaining):  # narrow() has left no index beyond an edge
            return None
        replacement = {v: nodes.get(n, self.dag.bound_variable(n)) for v, n in self.renamed.items()}
        padded = self.padded(replacement, is_summed=any(v.range.size > 1 for v in remaining))
        if padded is not None:
            return self.transposer.sum_over(remaining, padded)
        mask: ir.Node | None = None
        for condition in self.conditions:
            mask = a.both(mask, condition)
        values = (self.use.value,) if self.use.guard is None else (self.use.value, self.use.guard)
        value, *guard = ir.substitute(self.dag, values, replacement)
        if mask is not None:
            value, *guard = self.transposer.clamped((value, *guard))
        mask = a.both(mask, guard[0] if guard else None)
        return self.transposer.sum_over(remaining, a.where(mask, value))

    def padded(self, replacement: dict[ir.BoundVariable, ir.Node], is_summed: bool) -> ir.Node | None:
        """The value without a mask, if it is a product of reads and one factor can be read as 0 outside of its domain.

        So the gradient of a convolution is a convolution, at the same speed: for `a(i + k)`, db(y - k) * w(k) is 0
        wherever y - k is outside of the range of i, as the mask would make it. `replacement`: node for each context
        variable. `is_summed`: the factor is read at several points, so it is copied into an array padded with zeros.

        None, and the caller masks, if no variable needs a mask, if there are conditions that padding cannot express
        (borders, divisions, a guard), if no factor can be padded, or if the padded array would be too large.
        """
        if not self.masked or self.has_other_conditions or self.divided or self.use.guard is not None:
            return None
        factors = product_factors(self.use.value)
        if not all(f.op == "scalar" or isinstance(f.attribute, ir.Access) for f in factors):
            return None
        wanted = {old for old, new in self.renamed.items() if new in self.masked}
        chosen = next((f for f in factors if self.can_pad(f, wanted)), None)
        if chosen is None:
            return None
        indices = ir.substitute(self.dag, chosen.inputs[1:], replacement)
        bounds = [index_bounds(index) for index in indices]
        ranges = tuple(ir.Range(b[0], b[1] + 1) for b in bounds if b is not None)
        size, original = (
            math.prod(r.size for r in ranges),
            math.prod(v.range.size for v in function_variables(chosen.inputs[0])),
        )
        if len(ranges) < len(bounds) or size > 2 * original + MAX_PADDING:
            return None
        new = ir.new_variables(ranges)
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
        """True if a zero outside of its domain makes a factor 0 wherever a `wanted` variable leaves its range.

        That holds if the factor reads an evaluated function (not a free one, and without border modes) and each wanted
        variable is, alone, one of its indices, in a dimension that has exactly the variable's range.
        """
        if not isinstance(factor.attribute, ir.Access) or any(factor.attribute.borders):
            return False
        function = factor.inputs[0]
        if function.op != "let" or function.free_variables or not is_computed_function(ir.without_lets(function)):
            return False
        pairs = zip(factor.inputs[1:], function_variables(function), strict=True)
        read = {i.attribute for i, v in pairs if i.op == "variable" and same_range(i.attribute, v)}
        return wanted <= read


def function_variables(function: ir.Node) -> Context:
    """The parameters of a function of bound variables, inside of lets."""
    variables: Context = ir.without_lets(function).attribute
    return variables


def same_range(a: ir.BoundVariable, b: ir.BoundVariable) -> bool:
    """True if two variables run over the same indices."""
    return (a.range.low, a.range.high) == (b.range.low, b.range.high)
