"""Products, intersections and unions of domains; a union is a list of disjoint boxes."""

from __future__ import annotations

from itertools import product

from renderer.cdollar.checker.values import DomainValue
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, UNKNOWN, Dimension, Range

Box = tuple[Dimension, ...]
MAX_BOXES = 64


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
        boxes = [box for box in boxes if not _is_empty(box)] or boxes[:1]
    else:
        if INFINITE in everything:
            raise ProgramError("CS0323", span, "an infinite domain has no union")
        boxes = list(a.boxes)
        for box in b.boxes:
            parts = [box]
            for other in list(a.boxes):
                parts = [rest for part in parts for rest in _difference(part, other)]
            boxes += parts
        boxes = [box for box in boxes if not _is_empty(box)] or boxes[:1]
    if len(boxes) > MAX_BOXES:
        raise ProgramError("CS0323", span, f"this domain has {len(boxes)} boxes, more than {MAX_BOXES}")
    return DomainValue(boxes[0], tuple(boxes[1:]))


def count(domain: DomainValue) -> int | None:
    """The number of points; None while it is unknown. Infinite domains have none."""
    total = 0
    for box in domain.boxes:
        points = 1
        for dimension in box:
            if not isinstance(dimension, Range):
                return None
            points *= dimension.size
        total += points
    return total


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
    """The boxes of a that are outside of b."""
    if _is_empty(_intersection(a, b)):
        return [a]
    rest, parts = list(a), []
    for k, (one, other) in enumerate(zip(a, b, strict=True)):
        assert isinstance(one, Range) and isinstance(other, Range), "unions are finite"
        for low, high in ((one.low, other.low), (other.high, one.high)):
            if low < high:
                parts.append((*rest[:k], Range(low, high), *rest[k + 1 :]))
        rest[k] = Range(max(one.low, other.low), min(one.high, other.high))
    return [part for part in parts if not _is_empty(part)]
