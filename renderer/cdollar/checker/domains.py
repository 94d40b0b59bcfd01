"""Domains while a program is checked: products, intersections and unions; and the inference of ranges.

A union is a list of disjoint boxes. Inference (after Tensor Comprehensions) runs in rounds: affine indices narrow the
ranges of bound variables. Each full expression has an inference context, which collects its bound variables and one
constraint for each index. When the expression is lowered, its variables are solved; constraints on variables of an
outer expression move to the context of that expression. A Dimension (ir/dag.py) is a Range or one of three states:
INFINITE, NOT_INFERRED (not solved yet), or UNKNOWN (it depends on an unknown argument of a function that is checked).
A Range is `narrowed` if inference made it smaller than the declared domain. It `extends` if border modes give the
function values at all indices outside of it, too.

Example: `var c(i) = a(i) + b(i + 1)`, with a over 0..10 and b over 0..8, has the constraints `i in 0..10` and
`i + 1 in 0..8`. They give i the range 0..7, and so c its domain.
"""

import math
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from itertools import product
from typing import NoReturn

from renderer.cdollar.checker.values import DomainValue
from renderer.cdollar.frontend.diagnostics import ProgramError, Span, ordinal
from renderer.cdollar.ir.affine import Affine, affine, solve_bounds, value_bounds, variable_form
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, UNKNOWN, BoundVariable, Box, Dimension, Node, Range
from renderer.records import dataclass, field, replace

# Products, intersections and unions

MAX_BOXES = 64  # boxes of a union; each becomes a reduction


def combine(operator: str, a: DomainValue, b: DomainValue, span: Span) -> DomainValue:
    """`a * b`, `a & b` or `a | b`; raises CS0323."""
    ranks = len(a.ranges), len(b.ranges)
    if operator not in ("*", "&", "|") or operator != "*" and ranks[0] != ranks[1]:
        message = f"`{operator}` is not defined for a {a.type} and a {b.type}"
        raise ProgramError("CS0323", span, message, "domains have `*` (product), `&` (intersection), `|` (union)")
    everything = [dimension for domain in (a, b) for box in domain.boxes for dimension in box]
    if UNKNOWN in everything:
        return DomainValue((UNKNOWN,) * (sum(ranks) if operator == "*" else ranks[0]))
    if operator == "*":
        boxes: list[Box] = [one + other for one, other in product(a.boxes, b.boxes)]
    elif operator == "&":
        boxes = [_intersection(one, other) for one, other in product(a.boxes, b.boxes)]
        boxes = [box for box in boxes if not _is_empty(box)] or boxes[:1]  # a domain has a box, empty if need be
    else:
        if INFINITE in everything:
            raise ProgramError("CS0323", span, "an infinite domain has no union")
        boxes = list(a.boxes)
        for box in b.boxes:
            remaining = [box]
            for other in a.boxes:
                remaining = [rest for piece in remaining for rest in _difference(piece, other)]
            boxes += remaining
        boxes = [box for box in boxes if not _is_empty(box)] or boxes[:1]
    if len(boxes) > MAX_BOXES:
        raise ProgramError("CS0323", span, f"this domain has {len(boxes)} boxes, more than {MAX_BOXES}")
    return DomainValue(boxes[0], tuple(boxes[1:]))


def count_points(domain: DomainValue) -> int | None:
    """The number of points of a domain; None if it is infinite or not known yet."""
    sizes = [[dimension.size for dimension in box if isinstance(dimension, Range)] for box in domain.boxes]
    return sum(map(math.prod, sizes)) if all(len(each) == len(domain.ranges) for each in sizes) else None


def _is_empty(box: Box) -> bool:
    return any(isinstance(r, Range) and r.size == 0 for r in box)


def _intersection(a: Box, b: Box) -> Box:
    result: list[Dimension] = []
    for one, other in zip(a, b, strict=True):
        if isinstance(one, Range) and isinstance(other, Range):
            low = max(one.low, other.low)
            result.append(Range(low, max(low, min(one.high, other.high))))
        else:
            result.append(other if isinstance(other, Range) else one)
    return tuple(result)


def _difference(a: Box, b: Box) -> list[Box]:
    """Disjoint boxes that cover the points of a outside of b.

    Dimension by dimension, the slabs of `a` below and above `b` are cut off; `rest` is what remains of `a`.
    """
    if _is_empty(_intersection(a, b)):
        return [a]
    rest, boxes = list(a), []
    for k, (one, other) in enumerate(zip(a, b, strict=True)):
        assert isinstance(one, Range) and isinstance(other, Range), "unions are finite"
        for low, high in ((one.low, other.low), (other.high, one.high)):
            if low < high:
                boxes.append((*rest[:k], Range(low, high), *rest[k + 1 :]))
        rest[k] = Range(max(one.low, other.low), min(one.high, other.high))
    return [box for box in boxes if not _is_empty(box)]


# Inference


@dataclass(frozen=True)
class IndexConstraint:
    """The constraint that `index` stays in `range`.

    `guarded` is the number of conditions around the index: 1 for i - 1 in `i > 0 ? b(i - 1) : 0`. A guarded constraint
    is used only for variables that no unguarded constraint solves.
    """

    index: Node
    range: Dimension
    span: Span
    guarded: int = 0
    has_border: bool = False  # a border mode makes every index valid
    function: Node | None = None  # the function that the index is of


@dataclass(frozen=True)
class DataRange:
    """The range of a bound variable whose ends arrays hold, as of j in `sum(a(j), j : p(i)..p(i + 1))`.

    `guarded`: the number of conditions around its uses. The range itself counts as one, because a condition tests the
    ends at each index (range_test() of lowering/domains.py). box() is the range from the least low end to the greatest
    high end that the arrays hold; None while the ranges of the other variables are not known.
    """

    guarded: int
    box: Callable[[], Range | None]


Warn = Callable[[str, Span, str, str], None]  # Dag.warn(code, span, message, hint)
DataRanges = dict[BoundVariable, DataRange]
# Constraints that a variable's range must satisfy, each with the affine form of its index.
Uses = list[tuple[IndexConstraint, Affine]]


@dataclass
class InferenceContext:
    """The bound variables of one full expression, and their constraints."""

    variables: dict[BoundVariable, Span] = field(default_factory=dict)  # in order, with where each is bound
    restricted: set[BoundVariable] = field(default_factory=set)  # variables with a declared range: `i : 0..n`
    constraints: list[IndexConstraint] = field(default_factory=list)
    binders: dict[int, list[str]] = field(default_factory=dict)  # id of a reduction's tree -> the names it binds


class InferenceStack:
    """The contexts of the expressions around the current one.

    `log` says how each range was inferred (for --explain). `data_ranges` holds the variables whose ranges arrays hold.
    """

    def __init__(self, warn: Warn) -> None:
        self.contexts: list[InferenceContext] = []
        self.log: list[str] = []
        self.warn = warn
        self.data_ranges: DataRanges = {}

    @property
    def current(self) -> InferenceContext | None:
        """The context of the innermost expression."""
        return self.contexts[-1] if self.contexts else None

    @contextmanager
    def context(self) -> Iterator[InferenceContext]:
        """A context for a full expression; its variables are solved at the end."""
        outer, context = self.current, InferenceContext()
        self.contexts.append(context)
        try:
            yield context
        finally:
            self.contexts.pop()
        self._solve(context, outer)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Hides all contexts: a device function is lowered apart from the expression that calls it."""
        contexts, self.contexts = self.contexts, []
        try:
            yield
        finally:
            self.contexts = contexts

    def add_constraint(self, constraint: IndexConstraint) -> None:
        """Adds a constraint to the current context; without one it is checked at once."""
        if self.current is not None:
            self.current.constraints.append(constraint)
        else:
            Inference(InferenceContext(constraints=[constraint]), self.warn, {}).run()

    def _solve(self, context: InferenceContext, outer: InferenceContext | None) -> None:
        """Solves a context's variables; what depends on variables of `outer` is left to it. Raises CS0304."""
        inference = Inference(context, self.warn, self.data_ranges)
        inference.run()
        self.log += inference.log
        own = context.variables.keys()
        if outer is not None:
            forms = inference.forms
            # An index that is not affine (None) may use them too: _keep_borders() of the outer context reads it.
            outer.constraints += [c for c, f in forms if f is None or any(v not in own for v in f.variables)]
        for variable, span in context.variables.items():
            if variable.range is not NOT_INFERRED:
                continue
            if outer is not None and inference.depends_on_outer(variable, own):
                outer.variables[variable] = span
            elif variable.reduced:  # a reduction binds it
                name = variable.name
                message = f"the reduction over `{name}` has an infinite domain: no function or restriction bounds it"
                hint = f"restrict it: `{name} : 0..n`, or `{name} : f` for the domain of a function f"
                raise ProgramError("CS0304", span, message, hint)
            else:  # of a function: no index bounds it
                variable.range = INFINITE


class Inference:
    """Solves the bound variables of one context."""

    def __init__(self, context: InferenceContext, warn: Warn, data_ranges: DataRanges):
        self.context, self.warn, self.data_ranges = context, warn, data_ranges
        self.forms = [(constraint, affine(constraint.index)) for constraint in context.constraints]
        self.log: list[str] = []

    def run(self) -> None:
        """Solves until nothing changes: unguarded constraints first, then guarded ones, then border modes."""
        for max_guarded, with_borders in ((0, False), (math.inf, False), (math.inf, True)):
            while self._solve_data_ranges() or self._solve_round(max_guarded, with_borders):
                pass
        self._narrow()
        self._check()
        self._keep_borders()

    def _solve_data_ranges(self) -> bool:
        """Solves the variables of `data_ranges`; True if one was solved.

        An index that is read at every point gives the variable's range. A RangeCheck (ir/dag.py), which the lowering
        adds, tests at run time that the ends stay in that range. If every read has a border mode or a further
        condition, box() is the range.
        """
        for variable in self.context.variables:
            data = self.data_ranges.get(variable)
            if data is None or variable.range is not NOT_INFERRED:
                continue
            if self._solve_round(data.guarded, with_borders=False, only={variable}):
                return True
            reads = (use for use, form in self.forms if form is not None and variable in form.variables)
            if all(use.has_border or use.guarded > data.guarded for use in reads):
                variable.range = data.box() or NOT_INFERRED
                if variable.range is not NOT_INFERRED:
                    return True
        return False

    def _keep_borders(self) -> None:
        """Clears `extends` of variables that some index uses without a border mode, or whose ranges arrays hold.

        Other variables may have any value, since a border mode makes each of their indices valid.
        """
        bounded = {v for use, _ in self.forms if not use.has_border for v in use.index.free_variables}
        bounded |= self.data_ranges.keys()
        for variable in self.context.variables:
            if isinstance(variable.range, Range) and variable.range.extends and variable in bounded:
                variable.range = replace(variable.range, extends=False)

    def depends_on_outer(self, variable: BoundVariable, inner: Set[BoundVariable]) -> bool:
        """True if an unsolved variable depends on one that an outer expression will solve."""
        groups = (form.variables for _, form in self.forms if form is not None)
        return any(variable in vs and any(v not in inner and v.range is NOT_INFERRED for v in vs) for vs in groups)

    def _solve_round(self, max_guarded: float, with_borders: bool, only: Set[BoundVariable] | None = None) -> bool:
        """Solves each variable, or `only` some, that is the only unsolved one of a constraint; True if any was.

        Uses constraints inside of at most `max_guarded` conditions, and only `with_borders` the ones of border modes.
        """
        solvable: dict[BoundVariable, Uses] = {}
        for use, form in self.forms:
            is_late = use.guarded > max_guarded or use.has_border and not with_borders
            if form is None or is_late or use.range is INFINITE:
                continue
            unsolved = [v for v in form.variables if v.range is NOT_INFERRED]
            if len(unsolved) == 1 and (only is None or unsolved[0] in only):
                solvable.setdefault(unsolved[0], []).append((use, form))
        return any([self._solve(variable, uses) for variable, uses in solvable.items()])  # a list: all are solved

    def _solve(self, variable: BoundVariable, uses: Uses) -> bool:
        """Gives a variable the intersection of the ranges that its uses allow; False if no use says anything.

        A use is direct if the index is the variable alone: direct uses of different declared ranges are an error
        (CS0301), while other uses, such as `a(i + 1)`, only narrow the range.
        """
        result: Range | None = None
        direct: Range | None = None  # the range of the first direct use
        for use, form in uses:
            if use.range is UNKNOWN or not form.is_known or any(v.range is UNKNOWN for v in form.variables):
                variable.range = UNKNOWN
                return True
            if not isinstance(use.range, Range):
                continue
            is_direct = form == variable_form(variable)
            if use.has_border:
                candidate = replace(use.range, narrowed=True, provenance=use.span.provenance, extends=True)
            else:
                bounds = solve_bounds(form, variable, use.range)
                if bounds is None:
                    continue
                # max(): the range is empty where the bounds cross
                candidate = Range(bounds[0], max(bounds), use.range.narrowed or not is_direct, use.span.provenance)
            if is_direct and not candidate.narrowed and not use.has_border:
                if direct is not None and (direct.low, direct.high) != (candidate.low, candidate.high):
                    fail_range_conflict(variable.name, direct, candidate, use.span)
                direct = direct or candidate
            result = candidate if result is None else intersect(result, candidate)
        if result is None:
            return False
        variable.range = result
        self._warn_of_unread_elements(variable, result, uses)
        self.log.append(f"{variable.name} is {result} from {result.provenance}")
        return True

    def _warn_of_unread_elements(self, variable: BoundVariable, result: Range, uses: Uses) -> None:
        """Warns where a(i) is not read as a whole because of another function, as in `a(i) + b(i + 1)`.

        There is no warning for a stencil, `a(i) + a(i + 1)`, which has fewer points than a.
        """
        for use, form in uses:
            if form != variable_form(variable) or use.has_border or not isinstance(use.range, Range):
                continue
            is_stencil = any(u.function is use.function and f != form for u, f in uses)
            if is_stencil or use.range.narrowed or use.range.size <= result.size:
                continue
            shown = f"`{variable.name}` is {result}"
            self.warn(*unread_elements_warning(shown, result.provenance, use.span, use.range))

    def _violations(self) -> Iterator[tuple[IndexConstraint, Affine, Range, tuple[int, int]]]:
        """The constraints whose index can leave its range, with the index's least and greatest value."""
        for use, form in self.forms:
            if form is None or use.guarded or use.has_border or not isinstance(use.range, Range) or not form.is_known:
                continue
            bounds = value_bounds(form)
            if bounds is not None and not (bounds[0] >= use.range.low and bounds[1] < use.range.high):
                yield use, form, use.range, bounds

    def _narrow(self) -> None:
        """Narrows inferred ranges where an index of several variables would leave its range.

        Only variables that are neither restricted nor reduced are narrowed, as the result may then have fewer elements.
        A narrowed range may make another index fit or fail, so this is repeated, at most four times.
        """
        for _ in range(4):
            changed = False
            for use, form, range_, _ in self._violations():
                inferred = self.context.variables.keys() - self.context.restricted
                candidates = [v for v in form.variables if v in inferred and not v.reduced]
                if len(candidates) != 1 or form == variable_form(candidates[0]):
                    continue  # a direct use has given the variable its range
                bounds = solve_bounds(form, candidates[0], range_)
                if bounds is not None:
                    narrowed = Range(bounds[0], max(bounds), narrowed=True, provenance=use.span.provenance)
                    candidates[0].range = intersect(candidates[0].range, narrowed)
                    changed = True
            if not changed:
                return

    def _check(self) -> None:
        """Raises CS0303 for the first index that is outside of the domain it reads."""
        for use, form, range_, bounds in self._violations():
            if not form.terms:
                message = f"the index {form.constant} is outside of {range_} in {use.span.excerpt}"
                hint = "use an index of the domain, or a border mode: `f.clamp(...)`"
                if form.constant < 0 <= range_.low:
                    from_end = f"`size(a, 0) - {-form.constant}`"
                    hint = f"only slices count from the end, `a[{form.constant}:]`; it is {from_end}"
                raise ProgramError("CS0303", use.span, message, hint)
            origins = [(v, f" from {v.range.provenance}" if v.range.provenance else "") for v, _ in form.terms]
            names = " and ".join(f"`{v.name}` is {v.range}{origin}" for v, origin in origins)
            message = f"{names}, but {use.span.excerpt} reads {bounds[0]}..{bounds[1] + 1} where {range_} is allowed"
            hint = "restrict the variable, or use a border mode: `f.clamp(...)`, wrap, mirror or zero"
            raise ProgramError("CS0303", use.span, message, hint)


def intersect(a: Range, b: Range) -> Range:
    """The indices in both ranges, with the provenance of the tighter range."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    tighter = a if (a.low, a.high) == (low, high) else b
    return Range(low, max(low, high), a.narrowed or b.narrowed, tighter.provenance, a.extends and b.extends)


def unread_elements_warning(range_: str, origin: str, span: Span, domain: Range) -> tuple[str, Span, str, str]:
    """The arguments of Dag.warn() for CS0703: the range inferred from `origin` leaves out elements of `domain`."""
    message = f"{range_}, the range of {origin}, so {span.excerpt} leaves out a part of {domain}"
    return "CS0703", span, message, "write the range, `var c(i : 0..n) = ...`, if it is meant, or use a border mode"


def fail_range_conflict(name: str, first: Range, second: Range, span: Span) -> NoReturn:
    """Raises CS0301: two direct indices need different ranges."""
    smaller = first if first.size <= second.size else second
    message = f"`{name}` is {first} from {first.provenance} but {second} from {second.provenance}"
    hint = f"restrict it to what both have, `{name} : {smaller}`, or give functions of equal size"
    raise ProgramError("CS0301", span, message, hint)


def unify_ranges(position: int, dimensions: list[Dimension], span: Span) -> Dimension:
    """The range of the dimension at a position, which a promotion unifies; raises CS0301 if declared ranges differ."""
    result: Dimension = INFINITE
    for dimension in dimensions:
        if UNKNOWN in (result, dimension):
            result = UNKNOWN
        elif isinstance(result, Range) and isinstance(dimension, Range):
            if not result.narrowed and not dimension.narrowed and result != dimension:
                message = f"the {ordinal(position)} dimension is {result} and {dimension} in {span.excerpt}"
                hint = f"take what both have, `a[{max(result.low, dimension.low)}:{min(result.high, dimension.high)}]`"
                raise ProgramError("CS0301", span, message, f"{hint}, or name the dimensions: `var c(i, j) = ...`")
            result = intersect(result, dimension)
        elif dimension is not INFINITE:
            result = dimension
    return result
