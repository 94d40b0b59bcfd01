"""The meaning of every node in NumPy: the reference that all targets are held against.

A frame is a box of bound variables; each is an axis, and the axes of an inner frame stand before those of the outer
one, so that NumPy's broadcasting joins values of both. Large boxes are cut into parts, so that memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from renderer.cdollar.checker.arrays import evaluated_array
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.affine import Affine, affine
from renderer.cdollar.ir.dag import (
    Access,
    ArraySource,
    BoundVariable,
    Component,
    Node,
    Range,
    Reduction,
    UserCall,
    topological_order,
)
from renderer.cdollar.ir.operations import REDUCERS, evaluate
from renderer.cdollar.ir.passes import fuse, run_passes, simplify
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets.memory import check_memory
from renderer.cdollar.targets.numpy_simt import SimtInterpreter

MAX_TEMPORARY_ELEMENTS = 1 << 22  # elements of one temporary
CONTRACTED = 1 << 26  # elements of the output of one product


@dataclass
class Frame:
    """Bound variables with their axes (counted from the last) and ranges, and those bound to values."""

    axes: dict[BoundVariable, int]
    ranges: dict[BoundVariable, Range]
    values: dict[BoundVariable, object]
    outer: Frame | None
    memo: dict

    @property
    def depth(self) -> int:
        return len(self.axes)

    def inner(self, variables: tuple[BoundVariable, ...], ranges: tuple[Range, ...]) -> Frame:
        """A frame with more axes before these."""
        axes, all_ranges = dict(self.axes), dict(self.ranges)
        for variable, range_ in reversed(list(zip(variables, ranges, strict=True))):
            axes[variable] = len(axes)
            all_ranges[variable] = range_
        return Frame(axes, all_ranges, self.values, self, {})

    def holds(self, variable: BoundVariable) -> bool:
        return variable in self.axes or variable in self.values


class Bad:
    """Where values come from an index outside of its domain: a bool array, and the access that did it."""

    def __init__(self, where: np.ndarray, node: Node, index: str):
        self.where, self.node, self.index = where, node, index


def joined(bads: list) -> Bad | None:
    found = [b for b in bads if b is not None]
    if len(found) < 2:
        return found[0] if found else None
    where = found[0].where
    for other in found[1:]:
        where = where | other.where
    return Bad(where, found[0].node, found[0].index)


class NumpyTarget:
    """Evaluates nodes of one program; arrays that were evaluated are kept by node."""

    name = "numpy"

    def __init__(self, dag, places, passes=(simplify, fuse)):
        self.dag, self.places, self.passes = dag, places, list(passes)
        self.prepared: WeakKeyDictionary = WeakKeyDictionary()
        self.arrays: WeakKeyDictionary = WeakKeyDictionary()
        self.bytes_read = 0

    # What a program asks for

    def evaluate_scalars(self, nodes: list[Node]) -> list:
        """The numbers of nodes without bound variables."""
        frame = Frame({}, {}, {}, None, {})
        found = []
        for node in run_passes(self.dag, tuple(nodes), self.passes)[0]:
            value, bad = self.value(node, frame)
            self.must_be_good(bad)
            found.append(np.asarray(value).reshape(-1)[0].item())
        return found

    def materialize(self, function):
        """A function evaluated over its domain, as a function again."""
        parts = self.components(self.fused(function.node))
        return evaluated_array(self.dag, parts, tuple(function.domain), function.type, "array")

    def evaluate(self, node: Node) -> list[np.ndarray]:
        """The components of a functional node over its domain: the result of a program."""
        return self.components(self.fused(node))

    def fused(self, node: Node) -> Node:
        while node.op == "let":
            node = node.inputs[0]
        if node not in self.prepared:
            self.prepared[node] = run_passes(self.dag, (node,), self.passes)[0][0]
        return self.prepared[node]

    def components(self, node: Node) -> list[np.ndarray]:
        """The components of a functional node over its domain, kept for the next use."""
        if node.op == "let":
            return self.components(node.inputs[0])
        if isinstance(node.attribute, ArraySource):
            return node.attribute.data.read((slice(None),) * len(node.attribute.ranges))
        if node not in self.arrays:
            self.arrays[node] = self.tabulate(node)
        return self.arrays[node]

    def tabulate(self, node: Node) -> list[np.ndarray]:
        """A function of bound variables at every point of its box, part by part."""
        variables = node.attribute
        sizes = tuple(v.range.size for v in variables)
        check_memory(sizes, component_types(node.type.result), "an array")
        found = [np.empty(sizes, DTYPES[body.type]) for body in node.inputs]
        if 0 in sizes:
            return found
        workspace = max(self.workspace(body, frozenset(variables)) for body in node.inputs)
        for box in boxes([v.range for v in variables], max(1, MAX_TEMPORARY_ELEMENTS // workspace)):
            frame = Frame({}, {}, {}, None, {}).inner(variables, box)
            place = tuple(slice(r.low - v.range.low, r.high - v.range.low) for r, v in zip(box, variables, strict=True))
            for array, body in zip(found, node.inputs, strict=True):
                value, bad = self.value(body, frame)
                self.must_be_good(bad)
                array[place] = value
        return found

    def workspace(self, body: Node, outer: frozenset) -> int:
        """How many elements the reductions under a node add to each element of the box."""
        most = 1
        for node in topological_order([body]):
            if node.op == "reduce" and node.free_variables & outer and contraction(node) is None:
                size = 1
                for variable in node.attribute[1]:
                    size *= max(1, variable.range.size)
                most = max(most, min(size, MAX_TEMPORARY_ELEMENTS))
        return most

    def must_be_good(self, bad: Bad | None) -> None:
        if bad is None or not np.any(bad.where):
            return
        span = self.places.get(bad.node)
        message = f"an index is outside of the domain: {bad.index}"
        if span is None:
            raise AssertionError(message)
        raise ProgramError("CS0317", span, message, "a border mode makes it good: `f.clamp(...)`, wrap, mirror or zero")

    # Nodes

    def value(self, root: Node, frame: Frame):
        """An array that broadcasts over the frame's box, and where it is bad."""
        done = self.found(root, frame)
        if done is not None:
            return done
        for node in level_order(root, frame.memo):
            if self.found(node, frame) is None:
                self.home(node, frame).memo[id(node)] = self.compute(node, self.home(node, frame))
        return self.found(root, frame)

    def home(self, node: Node, frame: Frame) -> Frame:
        """The outermost frame that holds all that a node depends on."""
        while frame.outer is not None and all(frame.outer.holds(v) for v in node.free_variables):
            frame = frame.outer
        return frame

    def found(self, node: Node, frame: Frame):
        return self.home(node, frame).memo.get(id(node))

    def compute(self, node: Node, frame: Frame):
        if node.op == "scalar":
            number = node.attribute.number
            return np.asarray(number if number < 2**31 or node.type != "int" else number - 2**32).astype(
                DTYPES[node.type]
            ), None
        if node.op == "variable":
            return self.bound(node, frame), None
        if node.op == "let":
            return self.value(node.inputs[0], frame)
        if node.op == "reduce":
            return self.reduce(node, frame)
        if isinstance(node.attribute, Component):
            parts, bad = self.value(node.inputs[0], frame)
            return parts[node.attribute.index], bad
        if isinstance(node.attribute, Access):
            return self.access(node, frame)
        operands = [self.value(child, frame) for child in node.inputs]
        if isinstance(node.attribute, UserCall):
            with np.errstate(all="ignore"):
                parts = SimtInterpreter(node.attribute.function, self).call([v for v, _ in operands])
            return (parts if isinstance(node.type, tuple) else parts[0]), joined([b for _, b in operands])
        with np.errstate(all="ignore"):
            value = evaluate(node.attribute, node.type, [v for v, _ in operands])
        return value, self.carried(node.attribute, operands)

    def carried(self, name: str, operands: list) -> Bad | None:
        """What of an operation is bad: the branches that were not taken do not count."""
        bads = [b for _, b in operands]
        if not any(bads):
            return None
        chosen = operands[0][0]
        if name == "select":
            yes, no = bads[1], bads[2]
            yes = yes and Bad(yes.where & chosen, yes.node, yes.index)
            no = no and Bad(no.where & ~chosen, no.node, no.index)
            return joined([bads[0], yes, no])
        if name in ("&&", "||") and bads[1]:
            reached = chosen if name == "&&" else ~chosen
            return joined([bads[0], Bad(bads[1].where & reached, bads[1].node, bads[1].index)])
        return joined(bads)

    def bound(self, node: Node, frame: Frame) -> np.ndarray:
        variable = node.attribute
        if variable in frame.values:
            return frame.values[variable]
        range_ = frame.ranges[variable]
        values = np.arange(range_.low, range_.high, dtype=np.int64).astype(DTYPES[node.type])
        return values.reshape((-1,) + (1,) * frame.axes[variable])

    # Functions at indices

    def access(self, node: Node, frame: Frame):
        function, indices = node.inputs[0], node.inputs[1:]
        while function.op == "let":
            function = function.inputs[0]
        if isinstance(function.attribute, ArraySource):
            ranges, read = function.attribute.ranges, function.attribute.data.read
        elif all(isinstance(v.range, Range) for v in function.attribute):
            ranges = tuple(v.range for v in function.attribute)
            arrays = self.components(function)
            read = lambda box: [a[box] for a in arrays]  # noqa: E731
        else:
            return self.inlined(node, function, frame)
        fast = self.sliced(node, indices, ranges, frame)
        if fast is not None:
            box, order, shape = fast
            parts = [np.transpose(a, order).reshape(shape) for a in read(box)]
            return (parts if isinstance(node.type, tuple) else parts[0]), None
        return self.gathered(node, indices, ranges, read, frame)

    def inlined(self, node: Node, function: Node, frame: Frame):
        """A function without a finite box: its body, its variables bound to the arguments' values."""
        operands = [self.value(child, frame) for child in node.inputs[1:]]
        values = dict(frame.values)
        values.update(zip(function.attribute, (v for v, _ in operands), strict=True))
        inner = Frame(frame.axes, frame.ranges, values, None, {})
        results = [self.value(body, inner) for body in function.inputs]
        bad = joined([b for _, b in operands] + [b for _, b in results])
        parts = [v for v, _ in results]
        return (parts if isinstance(node.type, tuple) else parts[0]), bad

    def sliced(self, node: Node, indices: tuple[Node, ...], ranges: tuple, frame: Frame):
        """numpy slices, axis order and shape, if each index runs along its own axis and stays inside; else None."""
        box, places = [], []
        for index, range_ in zip(indices, ranges, strict=True):
            form = self.form(index, frame)
            if form is None or len(form.terms) > 1:
                return None
            if not form.terms:
                if not range_.low <= form.constant < range_.high:
                    return None
                box.append(form.constant - range_.low)
                continue
            variable, coefficient = form.terms[0]
            axis, own = frame.axes[variable], frame.ranges[variable]
            first = coefficient * own.low + form.constant
            last = coefficient * (own.high - 1) + form.constant
            if own.size == 0 or min(first, last) < range_.low or max(first, last) >= range_.high or axis in places:
                return None
            stop = last - range_.low + (1 if coefficient > 0 else -1)
            box.append(slice(first - range_.low, stop if stop >= 0 else None, coefficient))
            places.append(axis)
        order = sorted(range(len(places)), key=lambda k: -places[k])
        sizes = {frame.axes[v]: r.size for v, r in frame.ranges.items() if v in frame.axes}
        shape = tuple(sizes[a] if a in places else 1 for a in range(max(places, default=-1), -1, -1))
        return tuple(box), order, shape

    def form(self, index: Node, frame: Frame) -> Affine | None:
        """The index as an affine form over the frame's axes."""
        found = affine(index)
        if found is None or any(v not in frame.axes or v in frame.values for v, _ in found.terms):
            return None
        return found

    def gathered(self, node: Node, indices: tuple[Node, ...], ranges: tuple, read, frame: Frame):
        operands = [self.value(index, frame) for index in indices]
        bads = [b for _, b in operands]
        places, zero = [], None
        for (value, _), range_, border, index in zip(operands, ranges, node.attribute.borders, indices, strict=True):
            place = np.asarray(value).astype(np.int64) - range_.low
            outside = (place < 0) | (place >= range_.size)
            if border is None and np.any(outside):
                first = int(place[outside][0]) + range_.low if place.ndim else int(place) + range_.low
                bads.append(Bad(outside, node, f"{first} where {range_} is allowed"))
            elif border == "zero":
                zero = outside if zero is None else zero | outside
            places.append(folded(place, range_.size, border))
            del index
        if any(r.size == 0 for r in ranges):
            shape = np.broadcast_shapes(*(p.shape for p in places))
            parts = [np.zeros(shape, DTYPES[t]) for t in component_types(node.inputs[0].type.result)]
        else:
            parts = read(tuple(np.broadcast_arrays(*places)) if len(places) > 1 else tuple(places))
        if zero is not None:
            parts = [np.where(zero, part.dtype.type(0), part) for part in parts]
        return (list(parts) if isinstance(node.type, tuple) else parts[0]), joined(bads)

    # Reductions

    def reduce(self, node: Node, frame: Frame):
        reduction, variables = node.attribute
        ranges = tuple(v.range for v in variables)
        if any(r.size == 0 for r in ranges):
            return self.empty(node, reduction), None
        product = contraction(node)
        if product is not None and frame.depth:
            found = self.contract(node, product, variables, ranges, frame)
            if found is not None:
                return found
        workspace = max(
            1, *(self.workspace(child, frozenset(variables) | frozenset(frame.axes)) for child in node.inputs)
        )
        outer = 1
        for variable in node.free_variables:
            if variable in frame.axes:
                outer *= frame.ranges[variable].size
            elif variable in frame.values:
                outer = max(outer, np.asarray(frame.values[variable]).size)
        state, bads = None, []
        for box in boxes(list(ranges), max(1, MAX_TEMPORARY_ELEMENTS // (outer * workspace))):
            inner = frame.inner(variables, box)
            operands = [self.value(child, inner) for child in node.inputs]
            shape = tuple(r.size for r in box)
            state = self.joined_part(node, reduction, state, [v for v, _ in operands], shape, frame.depth)
            for _, bad in operands:
                if bad is not None:
                    where = np.broadcast_to(bad.where, np.broadcast_shapes(bad.where.shape, shape + (1,) * frame.depth))
                    bads.append(Bad(where.any(axis=tuple(range(len(shape)))), bad.node, bad.index))
        return self.finished(node, reduction, state), joined(bads)

    def empty(self, node: Node, reduction: Reduction):
        if reduction.name == "fold":
            frame = Frame({}, {}, {}, None, {})
            count = len(reduction.function.parameters) - (len(node.inputs) - width(node))
            del count
            parts = [self.value(child, frame)[0] for child in node.inputs[: width(node)]]
            return parts if isinstance(node.type, tuple) else parts[0]
        reducer = REDUCERS.get(reduction.name)
        if reducer is None or reducer.neutral is None:
            span = self.places.get(node)
            message = f"`{reduction.name}` over an empty domain has no value"
            if span is None:
                raise EmptyReduction(message)
            raise ProgramError("CS0318", span, message)
        return np.asarray(reducer.neutral(node.type)).astype(DTYPES[node.type])

    def joined_part(self, node: Node, reduction: Reduction, state, values: list, shape: tuple, depth: int):
        """The state after one more box of the reduced variables; its axes come first."""
        axes = tuple(range(len(shape)))
        full = [np.broadcast_to(v, np.broadcast_shapes(np.shape(v), shape + (1,) * depth)) for v in values]
        name = reduction.name
        if name in ("argmin", "argmax"):
            return self.best(name, state, full, len(shape))
        if reduction.function is not None:
            return self.folded_by_user(node, reduction, state, full, len(shape))
        with np.errstate(all="ignore"):
            if name in ("+", "*"):
                wide = np.float64 if node.type in ("float", "double") else full[0].dtype
                ufunc = np.add if name == "+" else np.multiply
                part = ufunc.reduce(full[0], axis=axes, dtype=wide)
            else:
                ufunc = {"min": np.fmin, "max": np.fmax, "&&": np.logical_and, "||": np.logical_or}[name]
                part = ufunc.reduce(full[0], axis=axes)
            return part if state is None else ufunc(state, part)

    def best(self, name: str, state, full: list, count: int):
        """The least or greatest value so far and its indices; the first of equals wins, NaN never does."""
        values = full[0].reshape((-1,) + full[0].shape[count:])
        ordered = (
            np.where(np.isnan(values), np.inf if name == "argmin" else -np.inf, values)
            if values.dtype.kind == "f"
            else values
        )
        place = (np.argmin if name == "argmin" else np.argmax)(ordered, axis=0)[None]
        best = np.take_along_axis(ordered, place, axis=0)[0]
        indices = []
        for index in full[1:]:
            shape = np.broadcast_shapes(index.shape, full[0].shape[:count] + (1,) * (index.ndim - count))
            flat = np.broadcast_to(index, shape).reshape((-1,) + shape[count:])
            flat = np.broadcast_to(flat, (flat.shape[0],) + values.shape[1:])
            indices.append(np.take_along_axis(flat, place, axis=0)[0])
        if state is None:
            return [best, *indices]
        better = best < state[0] if name == "argmin" else best > state[0]
        return [np.where(better, new, old) for new, old in zip([best, *indices], state, strict=True)]

    def folded_by_user(self, node: Node, reduction: Reduction, state, full: list, count: int):
        """A user's function over the elements in row-major order; halves at a time where it is associative."""
        size = width(node)
        function = reduction.function
        if reduction.name == "fold":
            start, elements = full[:size], full[size:]
        else:
            start, elements = None, full
        outer = np.broadcast_shapes(*(e.shape[count:] for e in full))
        flat = [np.broadcast_to(e, e.shape[:count] + outer).reshape((-1,) + outer) for e in elements]
        if not reduction.ordered:
            joined_ = halved(function, self, flat)
            return joined_ if state is None else SimtInterpreter(function, self).call([*state, *joined_])
        first = 0
        if state is None:
            if start is not None:
                state = [np.broadcast_to(s, s.shape[:count] + outer)[(0,) * count] for s in start]
            else:
                state, first = [f[0] for f in flat], 1
        lanes = SimtInterpreter(function, self)
        for row in range(first, flat[0].shape[0]):
            state = lanes.call([*state, *(f[row] for f in flat)])
        return state

    def finished(self, node: Node, reduction: Reduction, state):
        if reduction.name in ("argmin", "argmax"):
            parts = [np.asarray(p).astype(np.int32) for p in state[1:]]
            return parts if isinstance(node.type, tuple) else parts[0]
        if reduction.function is not None:
            return state if isinstance(node.type, tuple) else state[0]
        with np.errstate(all="ignore"):
            return np.asarray(state).astype(DTYPES[node.type])

    def contract(self, node: Node, factors: list[Node], variables: tuple, ranges: tuple, frame: Frame):
        """A sum of products as one einsum, in double precision; None if its output would be too large for one piece."""
        inner = frame.inner(variables, ranges)
        letters = {v: chr(ord("a") + k) for k, v in enumerate(inner.axes)} if len(inner.axes) <= 26 else None
        if letters is None or frame.values:
            return None
        operands, bads, subscripts = [], [], []
        used = set()
        for factor in factors:
            value, bad = self.value(factor, inner)
            bads.append(bad)
            axes = [v for v in sorted(inner.axes, key=lambda v: -inner.axes[v]) if v in factor.free_variables]
            places = [np.ndim(value) - 1 - inner.axes[v] for v in axes]
            shape = tuple(inner.ranges[v].size for v in axes)
            keep = np.broadcast_to(value, value.shape).reshape(tuple(value.shape[p] if p >= 0 else 1 for p in places))
            operands.append(np.broadcast_to(keep, shape).astype(np.float64))
            subscripts.append("".join(letters[v] for v in axes))
            used |= set(axes)
        if joined(bads) is not None:
            return None
        out = [v for v in sorted(frame.axes, key=lambda v: -frame.axes[v]) if v in used]
        repeat = 1
        for variable, range_ in zip(variables, ranges, strict=True):
            if variable not in used:
                repeat *= range_.size
        found = np.einsum(",".join(subscripts) + "->" + "".join(letters[v] for v in out), *operands, optimize="greedy")
        axes = [frame.axes[v] for v in out]
        shape = tuple(frame_size(frame, a) if a in axes else 1 for a in range(max(axes, default=-1), -1, -1))
        with np.errstate(all="ignore"):
            return (found * repeat).reshape(shape).astype(DTYPES[node.type]), None


class EmptyReduction(Exception):
    """A reduction without a neutral element over an empty domain."""


def frame_size(frame: Frame, axis: int) -> int:
    return next(frame.ranges[v].size for v, a in frame.axes.items() if a == axis)


def width(node: Node) -> int:
    return len(node.type) if isinstance(node.type, tuple) else 1


def contraction(node: Node) -> list[Node] | None:
    """The factors of a floating-point sum of products of which none depends on everything, else None."""
    reduction, variables = node.attribute
    if reduction.name != "+" or node.type not in ("float", "double"):
        return None
    factors, stack = [], [node.inputs[0]]
    while stack:
        part = stack.pop()
        if part.op == "apply" and part.attribute == "*":
            stack += part.inputs
        else:
            factors.append(part)
    everything = node.inputs[0].free_variables
    if not 2 <= len(factors) <= 6 or any(f.free_variables >= everything for f in factors):
        return None
    if any(not (f.free_variables & frozenset(variables)) and f.op == "reduce" for f in factors):
        return None
    return factors


def halved(function, interpreter: NumpyTarget, parts: list[np.ndarray]) -> list[np.ndarray]:
    """An associative function over the first axis, neighbours first: log n rounds."""
    lanes = SimtInterpreter(function, interpreter)
    while parts[0].shape[0] > 1:
        count = parts[0].shape[0]
        even = count - count % 2
        joined_ = lanes.call([p[0:even:2] for p in parts] + [p[1:even:2] for p in parts])
        if count % 2:
            joined_ = [np.concatenate([j, p[-1:]]) for j, p in zip(joined_, parts, strict=True)]
        parts = joined_
    return [p[0] for p in parts]


def folded(place: np.ndarray, size: int, border: str | None) -> np.ndarray:
    """Indices 0..size by a border mode; without one, those outside are cut (their values are bad)."""
    if size == 0:
        return np.zeros_like(place)
    if border == "wrap":
        return place % size
    if border == "mirror":
        around = place % (2 * size)
        return np.where(around < size, around, 2 * size - 1 - around)
    return np.clip(place, 0, size - 1)


def level_order(root: Node, memo: dict) -> list[Node]:
    """Nodes under the root that live in its frame, inputs first: not the bodies of reductions nor functions."""
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if id(node) in seen or id(node) in memo:
            continue
        seen.add(id(node))
        stack.append((node, True))
        if node.op == "reduce":
            continue
        inputs = node.inputs[1:] if isinstance(node.attribute, Access) else node.inputs
        stack.extend((child, False) for child in inputs)
    return order


def boxes(ranges: list[Range], most: int):
    """A box cut into boxes of at most `most` points, in row-major order."""
    total = 1
    for range_ in ranges:
        total *= range_.size
    if total <= most or not ranges:
        yield tuple(ranges)
        return
    first, rest = ranges[0], ranges[1:]
    row = total // first.size
    step = max(1, most // max(1, row))
    for low in range(first.low, first.high, step):
        piece = Range(low, min(first.high, low + step))
        if row <= most:
            yield (piece, *rest)
        else:
            for other in boxes(rest, most):
                yield (piece, *other)
