"""Domain inference in rounds (after Tensor Comprehensions): affine indices, restrictions, conflicts with both facts."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, UNKNOWN, UNSOLVED, Argument, Bound, Literal, Node, Range


@dataclass(frozen=True)
class Use:
    """`index` is used where indices of `range` are allowed."""

    index: Node
    range: object
    span: Span
    guarded: bool = False  # under a condition: it binds only if nothing else does
    border: bool = False  # a border mode makes every index good

    @property
    def place(self) -> str:
        return f"{self.span.short} at {self.span.at}"


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * variable; `exact` is False while a host number is not known yet."""

    terms: tuple[tuple[Bound, int], ...]
    constant: int
    exact: bool = True


def affine(node: Node) -> Affine | None:
    """The node as an affine function of bound variables, or None if it is none."""
    if node.op == "bound":
        return Affine(((node.value, 1),), 0) if node.type in ("int", "uint") else None
    if node.op == "scalar" and node.type in ("int", "uint"):
        number = node.value.number
        return Affine((), 0, False) if number is None else Affine((), int(number))
    if node.op == "let":
        return affine(node.inputs[0])
    if node.op != "apply" or not isinstance(node.value, str):
        return None
    if node.value == "convert":
        return affine(node.inputs[0]) if node.inputs[0].type in ("int", "uint") else None
    if node.value == "neg":
        inner = affine(node.inputs[0])
        return inner and scaled(inner, -1)
    if node.value not in ("+", "-", "*"):
        return None
    left, right = affine(node.inputs[0]), affine(node.inputs[1])
    if left is None or right is None:
        return None
    if node.value == "*":
        if left.terms and right.terms:
            return None
        factor, other = (right, left) if left.terms else (left, right)
        return Affine(other.terms, 0, False) if not factor.exact else scaled(other, factor.constant)
    return joined(left, right if node.value == "+" else scaled(right, -1))


def scaled(form: Affine, factor: int) -> Affine:
    return Affine(tuple((v, c * factor) for v, c in form.terms), form.constant * factor, form.exact)


def joined(a: Affine, b: Affine) -> Affine:
    terms = dict(a.terms)
    for variable, coefficient in b.terms:
        terms[variable] = terms.get(variable, 0) + coefficient
    kept = tuple((v, c) for v, c in terms.items() if c)
    return Affine(kept, a.constant + b.constant, a.exact and b.exact)


def interval(form: Affine) -> tuple[int, int] | None:
    """Least and greatest value over the ranges of its variables, None if one is not finite or is empty."""
    low = high = form.constant
    for variable, coefficient in form.terms:
        if not isinstance(variable.range, Range) or variable.range.size == 0:
            return None
        ends = coefficient * variable.range.low, coefficient * (variable.range.high - 1)
        low, high = low + min(ends), high + max(ends)
    return low, high


def allowed(form: Affine, variable: Bound, range_: Range) -> tuple[int, int] | None:
    """low, high of `variable` so that the index stays in the range for all values of the other variables."""
    coefficient = dict(form.terms)[variable]
    rest = Affine(tuple(t for t in form.terms if t[0] is not variable), form.constant)
    ends = interval(rest)
    if ends is None:
        return None
    low, high = range_.low - ends[0], range_.high - 1 - ends[1]
    if coefficient < 0:
        low, high = -high, -low
    size = abs(coefficient)
    return -(-low // size), high // size + 1


class Inference:
    """Solves the bound variables of one expression from their uses; `explicit` are the written restrictions."""

    def __init__(self, variables: list[Bound], uses: list[Use], explicit: dict[Bound, Span]):
        self.variables, self.uses, self.explicit = variables, uses, explicit
        self.forms = [(use, affine(use.index)) for use in uses]
        self.rounds: list[str] = []

    def run(self) -> None:
        for guarded, border in ((False, False), (True, False), (True, True)):
            while self.round(guarded, border):
                pass
        self.shrink()
        self.check()

    def unsolved(self, form: Affine) -> list[Bound]:
        return [v for v, _ in form.terms if v.range is UNSOLVED]

    def round(self, guarded: bool, border: bool) -> bool:
        """Solve each variable that is the only unsolved one of some use; True if any was."""
        found: dict[Bound, list[tuple[Use, Affine]]] = {}
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

    def solve(self, variable: Bound, uses: list[tuple[Use, Affine]]) -> bool:
        range_, plain = None, None
        for use, form in uses:
            if use.range is UNKNOWN or not form.exact or any(v.range is UNKNOWN for v, _ in form.terms):
                variable.range = UNKNOWN
                return True
            if not isinstance(use.range, Range):
                continue
            is_plain = form.terms == ((variable, 1),) and form.constant == 0
            if use.border:
                candidate = Range(use.range.low, use.range.high, True, use.place)
            else:
                ends = allowed(form, variable, use.range)
                if ends is None:
                    continue
                shrunk = use.range.shrunk or not is_plain
                candidate = Range(ends[0], max(ends), shrunk, use.place)
            if is_plain and not candidate.shrunk and not use.border:
                if plain is not None and (plain.low, plain.high) != (candidate.low, candidate.high):
                    conflict(variable.name, plain, candidate, use.span)
                plain = plain or candidate
            range_ = candidate if range_ is None else meet(range_, candidate)
        if range_ is None:
            return False
        variable.range = range_
        self.rounds.append(f"{variable.name} is {range_} from {range_.why}")
        return True

    def shrink(self) -> None:
        """Make inferred ranges smaller where a use with several variables would leave its range."""
        for _ in range(4):
            changed = False
            for use, form in self.forms:
                if form is None or use.guarded or use.border or not isinstance(use.range, Range) or not form.exact:
                    continue
                ends = interval(form)
                if ends is None or (ends[0] >= use.range.low and ends[1] < use.range.high):
                    continue
                candidates = [
                    v for v, _ in form.terms if v in self.variables and v not in self.explicit and not v.reduced
                ]
                if len(candidates) != 1 or is_single(form):
                    continue
                limits = allowed(form, candidates[0], use.range)
                if limits is not None:
                    smaller = Range(limits[0], max(limits), True, use.place)
                    candidates[0].range = meet(candidates[0].range, smaller)
                    changed = True
            if not changed:
                return

    def check(self) -> None:
        for use, form in self.forms:
            if form is None or use.guarded or use.border or not isinstance(use.range, Range) or not form.exact:
                continue
            ends = interval(form)
            if ends is None or (ends[0] >= use.range.low and ends[1] < use.range.high):
                continue
            if not form.terms:
                raise ProgramError(
                    "CS0303", use.span, f"the index {form.constant} is outside of {use.range} in {use.span.short}",
                    "use an index of the domain, or a border mode: `f.clamp(...)`",
                )  # fmt: skip
            names = " and ".join(
                f"`{v.name}` is {v.range}" + (f" from {v.range.why}" if v.range.why else "") for v, _ in form.terms
            )
            raise ProgramError(
                "CS0303", use.span,
                f"{names}, but {use.span.short} reads {ends[0]}..{ends[1] + 1} where {use.range} is allowed",
                "restrict the variable, or use a border mode: `f.clamp(...)`, wrap, mirror or zero",
            )  # fmt: skip


def is_single(form: Affine) -> bool:
    return len(form.terms) == 1 and form.terms[0][1] == 1 and form.constant == 0


def meet(a: Range, b: Range) -> Range:
    low, high = max(a.low, b.low), min(a.high, b.high)
    tighter = a if (a.low, a.high) == (low, high) else b
    return Range(low, max(low, high), a.shrunk or b.shrunk, tighter.why)


def conflict(name: str, first: Range, second: Range, span: Span):
    smaller = first if first.size <= second.size else second
    raise ProgramError(
        "CS0301", span, f"`{name}` is {first} from {first.why} but {second} from {second.why}",
        f"restrict it to what both have, `{name} : {smaller}`, or give functions of equal size",
    )  # fmt: skip


def intersect(name: str, ranges: list, span: Span):
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
        if not found.shrunk and not range_.shrunk and (found.low, found.high) != (range_.low, range_.high):
            conflict(name, found, range_, span)
        found = meet(found, range_)
    return found


def known(node: Node) -> object:
    """The number of a scalar leaf that the host knows, else None."""
    return node.value.number if node.op == "scalar" and isinstance(node.value, (Literal, Argument)) else None
