"""Domain inference in rounds (after Tensor Comprehensions): affine indices, restrictions, conflicts with both facts."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.affine import Affine, affine, solve_bounds, value_bounds
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, UNKNOWN, BoundVariable, Node, Range


@dataclass(frozen=True)
class IndexConstraint:
    """`index` is used where indices of `range` are allowed."""

    index: Node
    range: object
    span: Span
    guarded: bool = False  # under a condition: it binds only if nothing else does
    border: bool = False  # a border mode makes every index good

    @property
    def place(self) -> str:
        return f"{self.span.short} at {self.span.at}"


class Inference:
    """Solves the bound variables of one expression from their uses; `explicit` are the written restrictions."""

    def __init__(
        self, variables: list[BoundVariable], uses: list[IndexConstraint], explicit: dict[BoundVariable, Span]
    ):
        self.variables, self.uses, self.explicit = variables, uses, explicit
        self.forms = [(use, affine(use.index)) for use in uses]
        self.rounds: list[str] = []

    def run(self) -> None:
        for guarded, border in ((False, False), (True, False), (True, True)):
            while self.round(guarded, border):
                pass
        self.shrink()
        self.check()

    def unsolved(self, form: Affine) -> list[BoundVariable]:
        return [v for v, _ in form.terms if v.range is NOT_INFERRED]

    def round(self, guarded: bool, border: bool) -> bool:
        """Solve each variable that is the only unsolved one of some use; True if any was."""
        found: dict[BoundVariable, list[tuple[IndexConstraint, Affine]]] = {}
        for use, form in self.forms:
            if form is None or use.guarded > guarded or use.border > border or use.range is INFINITE:
                continue
            open_ = self.unsolved(form)
            if len(open_) == 1:
                found.setdefault(open_[0], []).append((use, form))
        solved = False
        for variable, uses in found.items():
            solved |= self.solve(variable, uses)
        return solved

    def solve(self, variable: BoundVariable, uses: list[tuple[IndexConstraint, Affine]]) -> bool:
        range_, plain = None, None
        for use, form in uses:
            if use.range is UNKNOWN or not form.is_known or any(v.range is UNKNOWN for v, _ in form.terms):
                variable.range = UNKNOWN
                return True
            if not isinstance(use.range, Range):
                continue
            is_plain = form.terms == ((variable, 1),) and form.constant == 0
            if use.border:
                candidate = Range(use.range.low, use.range.high, True, use.place)
            else:
                ends = solve_bounds(form, variable, use.range)
                if ends is None:
                    continue
                narrowed = use.range.narrowed or not is_plain
                candidate = Range(ends[0], max(ends), narrowed, use.place)
            if is_plain and not candidate.narrowed and not use.border:
                if plain is not None and (plain.low, plain.high) != (candidate.low, candidate.high):
                    conflict(variable.name, plain, candidate, use.span)
                plain = plain or candidate
            range_ = candidate if range_ is None else intersect(range_, candidate)
        if range_ is None:
            return False
        variable.range = range_
        self.rounds.append(f"{variable.name} is {range_} from {range_.provenance}")
        return True

    def shrink(self) -> None:
        """Make inferred ranges smaller where a use with several variables would leave its range."""
        for _ in range(4):
            changed = False
            for use, form in self.forms:
                if form is None or use.guarded or use.border or not isinstance(use.range, Range) or not form.is_known:
                    continue
                ends = value_bounds(form)
                if ends is None or (ends[0] >= use.range.low and ends[1] < use.range.high):
                    continue
                candidates = [
                    v for v, _ in form.terms if v in self.variables and v not in self.explicit and not v.reduced
                ]
                if len(candidates) != 1 or is_single(form):
                    continue
                limits = solve_bounds(form, candidates[0], use.range)
                if limits is not None:
                    smaller = Range(limits[0], max(limits), True, use.place)
                    candidates[0].range = intersect(candidates[0].range, smaller)
                    changed = True
            if not changed:
                return

    def check(self) -> None:
        for use, form in self.forms:
            if form is None or use.guarded or use.border or not isinstance(use.range, Range) or not form.is_known:
                continue
            ends = value_bounds(form)
            if ends is None or (ends[0] >= use.range.low and ends[1] < use.range.high):
                continue
            if not form.terms:
                raise ProgramError(
                    "CS0303", use.span, f"the index {form.constant} is outside of {use.range} in {use.span.short}",
                    "use an index of the domain, or a border mode: `f.clamp(...)`",
                )  # fmt: skip
            names = " and ".join(
                f"`{v.name}` is {v.range}" + (f" from {v.range.provenance}" if v.range.provenance else "")
                for v, _ in form.terms
            )
            raise ProgramError(
                "CS0303", use.span,
                f"{names}, but {use.span.short} reads {ends[0]}..{ends[1] + 1} where {use.range} is allowed",
                "restrict the variable, or use a border mode: `f.clamp(...)`, wrap, mirror or zero",
            )  # fmt: skip


def is_single(form: Affine) -> bool:
    return len(form.terms) == 1 and form.terms[0][1] == 1 and form.constant == 0


def intersect(a: Range, b: Range) -> Range:
    low, high = max(a.low, b.low), min(a.high, b.high)
    tighter = a if (a.low, a.high) == (low, high) else b
    return Range(low, max(low, high), a.narrowed or b.narrowed, tighter.provenance)


def conflict(name: str, first: Range, second: Range, span: Span):
    smaller = first if first.size <= second.size else second
    raise ProgramError(
        "CS0301", span, f"`{name}` is {first} from {first.provenance} but {second} from {second.provenance}",
        f"restrict it to what both have, `{name} : {smaller}`, or give functions of equal size",
    )  # fmt: skip


def unify_ranges(name: str, ranges: list, span: Span):
    """The range that functions share when a promotion joins one of their dimensions."""
    found = INFINITE
    for range_ in ranges:
        if range_ is INFINITE:
            continue
        if range_ is UNKNOWN or found is UNKNOWN:
            found = UNKNOWN
            continue
        if found is INFINITE:
            found = range_
            continue
        if not found.narrowed and not range_.narrowed and (found.low, found.high) != (range_.low, range_.high):
            conflict(name, found, range_, span)
        found = intersect(found, range_)
    return found
