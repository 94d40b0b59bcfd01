"""Domain inference in rounds (after Tensor Comprehensions): affine indices narrow the ranges of bound variables.

Each whole expression has an inference context, which collects its bound variables and one constraint for each index.
When the expression is lowered, its variables are solved; constraints on variables of an outer expression move there.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.affine import Affine, affine, solve_bounds, value_bounds
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, UNKNOWN, BoundVariable, Dimension, Node, Range


@dataclass(frozen=True)
class IndexConstraint:
    """`index` must stay in `range`; one that is `guarded` (under a condition) counts only if nothing else does."""

    index: Node
    range: Dimension
    span: Span
    guarded: bool = False
    has_border: bool = False  # a border mode makes every index valid


@dataclass
class InferenceContext:
    """The bound variables of one whole expression and what is known about them."""

    variables: dict[BoundVariable, Span] = field(default_factory=dict)  # in order, with where each is bound
    restricted: set[BoundVariable] = field(default_factory=set)  # whose range a restriction gives
    constraints: list[IndexConstraint] = field(default_factory=list)
    binders: dict[int, list[str]] = field(default_factory=dict)  # id of a reduction's tree -> names that it binds


class InferenceStack:
    """The contexts of the expressions around the current one; `log` says how each range was inferred."""

    def __init__(self) -> None:
        self.contexts: list[InferenceContext] = []
        self.log: list[str] = []

    @property
    def current(self) -> InferenceContext | None:
        """The context of the innermost expression."""
        return self.contexts[-1] if self.contexts else None

    @contextmanager
    def context(self) -> Iterator[InferenceContext]:
        """A context for a whole expression; its variables are solved at the end."""
        outer, context = self.current, InferenceContext()
        self.contexts.append(context)
        try:
            yield context
        finally:
            self.contexts.pop()
        self._solve(context, outer)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """No contexts: for functions that are lowered apart from the expression that calls them."""
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
            Inference(InferenceContext(constraints=[constraint])).run()

    def _solve(self, context: InferenceContext, outer: InferenceContext | None) -> None:
        inference = Inference(context)
        inference.run()
        self.log += inference.log
        own = context.variables.keys()
        if outer is not None:
            outer.constraints += [
                c for c, form in inference.forms if form is None or any(v not in own for v, _ in form.terms)
            ]
        for variable, span in context.variables.items():
            if variable.range is not NOT_INFERRED:
                continue
            if outer is not None and inference.depends_on_outer(variable, own):
                outer.variables[variable] = span
            elif variable.reduced:
                raise ProgramError(
                    "CS0304", span,
                    f"the reduction over `{variable.name}` has an infinite domain:"
                    " no function or restriction bounds it",
                    f"restrict it: `{variable.name} : 0..n`, or `{variable.name} : f` for the domain of a function f",
                )  # fmt: skip
            else:
                variable.range = INFINITE


class Inference:
    """Solves the bound variables of one context."""

    def __init__(self, context: InferenceContext):
        self.context = context
        self.forms = [(constraint, affine(constraint.index)) for constraint in context.constraints]
        self.log: list[str] = []

    def run(self) -> None:
        """Solves until nothing changes: unguarded constraints first, then guarded ones, then border modes."""
        for guarded, has_border in ((False, False), (True, False), (True, True)):
            while self._solve_round(guarded, has_border):
                pass
        self._narrow()
        self._check()

    def depends_on_outer(self, variable: BoundVariable, own: Set[BoundVariable]) -> bool:
        """Whether an unsolved variable depends on one that an outer expression will solve."""
        groups = ([v for v, _ in form.terms] for _, form in self.forms if form)
        return any(variable in vs and any(v not in own and v.range is NOT_INFERRED for v in vs) for vs in groups)

    def _solve_round(self, guarded: bool, has_border: bool) -> bool:
        """Solves each variable that is the only unsolved one of a constraint; True if any was."""
        solvable: dict[BoundVariable, list[tuple[IndexConstraint, Affine]]] = {}
        for use, form in self.forms:
            if form is None or use.guarded > guarded or use.has_border > has_border or use.range is INFINITE:
                continue
            unsolved = [v for v, _ in form.terms if v.range is NOT_INFERRED]
            if len(unsolved) == 1:
                solvable.setdefault(unsolved[0], []).append((use, form))
        return any([self._solve(variable, uses) for variable, uses in solvable.items()])

    def _solve(self, variable: BoundVariable, uses: list[tuple[IndexConstraint, Affine]]) -> bool:
        result: Range | None = None
        direct: Range | None = None
        for use, form in uses:
            if use.range is UNKNOWN or not form.is_known or any(v.range is UNKNOWN for v, _ in form.terms):
                variable.range = UNKNOWN
                return True
            if not isinstance(use.range, Range):
                continue
            is_direct = form.terms == ((variable, 1),) and form.constant == 0
            if use.has_border:
                candidate = Range(use.range.low, use.range.high, True, use.span.provenance)
            else:
                bounds = solve_bounds(form, variable, use.range)
                if bounds is None:
                    continue
                candidate = Range(bounds[0], max(bounds), use.range.narrowed or not is_direct, use.span.provenance)
            if is_direct and not candidate.narrowed and not use.has_border:
                if direct is not None and (direct.low, direct.high) != (candidate.low, candidate.high):
                    conflict(variable.name, direct, candidate, use.span)
                direct = direct or candidate
            result = candidate if result is None else intersect(result, candidate)
        if result is None:
            return False
        variable.range = result
        self.log.append(f"{variable.name} is {result} from {result.provenance}")
        return True

    def _violations(self) -> Iterator[tuple[IndexConstraint, Affine, Range, tuple[int, int]]]:
        """The constraints whose index can leave its range, with the index's least and greatest value."""
        for use, form in self.forms:
            if form is None or use.guarded or use.has_border or not isinstance(use.range, Range) or not form.is_known:
                continue
            bounds = value_bounds(form)
            if bounds is not None and not (bounds[0] >= use.range.low and bounds[1] < use.range.high):
                yield use, form, use.range, bounds

    def _narrow(self) -> None:
        """Narrows inferred ranges where an index of several variables would leave its range."""
        for _ in range(4):
            changed = False
            for use, form, range_, _ in self._violations():
                candidates = [
                    v for v, _ in form.terms
                    if v in self.context.variables and v not in self.context.restricted and not v.reduced
                ]  # fmt: skip
                if len(candidates) != 1 or form == Affine(((candidates[0], 1),), 0):
                    continue
                bounds = solve_bounds(form, candidates[0], range_)
                if bounds is not None:
                    narrowed = Range(bounds[0], max(bounds), True, use.span.provenance)
                    candidates[0].range = intersect(candidates[0].range, narrowed)
                    changed = True
            if not changed:
                return

    def _check(self) -> None:
        for use, form, range_, bounds in self._violations():
            if not form.terms:
                raise ProgramError(
                    "CS0303", use.span, f"the index {form.constant} is outside of {range_} in {use.span.excerpt}",
                    "use an index of the domain, or a border mode: `f.clamp(...)`",
                )  # fmt: skip
            names = " and ".join(
                f"`{v.name}` is {v.range}" + (f" from {v.range.provenance}" if v.range.provenance else "")
                for v, _ in form.terms
            )
            raise ProgramError(
                "CS0303", use.span,
                f"{names}, but {use.span.excerpt} reads {bounds[0]}..{bounds[1] + 1} where {range_} is allowed",
                "restrict the variable, or use a border mode: `f.clamp(...)`, wrap, mirror or zero",
            )  # fmt: skip


def intersect(a: Range, b: Range) -> Range:
    """The indices that both ranges have."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    tighter = a if (a.low, a.high) == (low, high) else b
    return Range(low, max(low, high), a.narrowed or b.narrowed, tighter.provenance)


def conflict(name: str, first: Range, second: Range, span: Span) -> NoReturn:
    """Raises CS0301: two direct indices need different ranges."""
    smaller = first if first.size <= second.size else second
    raise ProgramError(
        "CS0301", span, f"`{name}` is {first} from {first.provenance} but {second} from {second.provenance}",
        f"restrict it to what both have, `{name} : {smaller}`, or give functions of equal size",
    )  # fmt: skip


def unify_ranges(name: str, dimensions: list[Dimension], span: Span) -> Dimension:
    """The range of a dimension that a promotion unifies; raises CS0301 if declared ranges differ."""
    result: Dimension = INFINITE
    for dimension in dimensions:
        if UNKNOWN in (result, dimension):
            result = UNKNOWN
        elif isinstance(result, Range) and isinstance(dimension, Range):
            if not result.narrowed and not dimension.narrowed and result != dimension:
                conflict(name, result, dimension, span)
            result = intersect(result, dimension)
        elif dimension is not INFINITE:
            result = dimension
    return result
