"""Emits the expressions of kernels with their reductions, which are loops inside of them.

In elementwise kernels all arrays are read at the linear index that is written, four elements at a time if possible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from renderer.cdollar.ir.dag import Access, BoundVariable, Node, scalar_types, without_lets
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.ir.types import FLOATS, promoted_type
from renderer.cdollar.targets.device_functions import DRIVER_LIMIT_STATUS, has_loops
from renderer.cdollar.targets.dialects import (
    CDialect,
    indented,
    literal,
    neutral_text,
    operation_text,
    storage_type,
)
from renderer.cdollar.targets.expression_emitter import Block, EmittedValue, ExpressionEmitter, RangesOf
from renderer.cdollar.targets.strict_order import BLOCK, depends_on_order, level_count

VECTOR_TYPES = ("float", "int", "uint", "half", "byte")  # of elements that are read four at a time
VECTOR = "xyzw"  # components of a vector of four elements
MIN_COMPENSATED_LENGTH = 4096  # elements of a float sum that carries what rounding loses
MAX_GLSL_ROUNDS = 4096  # of a loop in GLSL that is not unrolled
UNROLLED_ROUNDS = 32  # drivers unroll loops of so many rounds
MAX_ELEMENTS_IN_TEXT = 64  # of a reduction that the text of a processor's kernel has element by element
MAX_UNROLLED_EXTENT = 16  # a reduction over at most this many indices has its bounds in the text, to be unrolled


class LoopReduction:
    """The state of a reduction of one thread.

    `state` names the variables of what a thread passes on, of `passed_types`: the result's components, of `types`; the
    compared value of argmin and argmax; what rounding lost of a long sum of floats, 3 operations an element more than
    Kahan's but right for terms of any size (Neumaier 1974, Knuth's 2Sum); and, for reductions without a start value, 1
    once an element was combined.
    """

    def __init__(self, emitter: ExpressionEmitter, node: Node, length: int | None = None) -> None:
        """Reduce `node` in the blocks of `emitter`, or `length` elements of its range."""
        self.emitter, self.node = emitter, node
        self.reduction, self.variables = node.attribute
        self.types = scalar_types(node)
        self.is_arg_extremum = self.reduction.name in ("argmin", "argmax")
        self.is_fold = self.reduction.name == "fold"
        best = (node.inputs[0].type,) if self.is_arg_extremum else ()
        self.has_start = not (self.is_arg_extremum or self.reduction.function is not None and not self.is_fold)
        is_float_sum = self.reduction.name == "+" and self.types[0] in FLOATS
        length = math.prod(variable.range.size for variable in self.variables) if length is None else length
        is_strict = emitter.dialect.strict and depends_on_order(self.reduction, node.type)
        self.levels = level_count(length) - 1 if is_strict else 0  # of blocks above the first: see strict_order.py
        self.is_compensated = is_float_sum and not is_strict
        self.is_compensated &= length >= MIN_COMPENSATED_LENGTH and emitter.dialect.keeps_rounding
        lost = self.types if self.is_compensated else ()
        passed = (*self.types, *best, *lost, *(() if self.has_start else ("int",)))
        self.passed_types = tuple(map(promoted_type, passed))
        self.state: list[str] = []
        self.blocks: list[str] = []  # the unfinished block of each level, the first of which is the state
        self.count = ""  # of elements
        self.poison = ""
        self.may_poison = False

    def start(self) -> None:
        """Emit the state's variables."""
        e, lines = self.emitter, self.emitter.blocks[-1].lines
        poison = None
        values = [neutral_text(self.reduction.name, type_, e.dialect) for type_ in self.passed_types]
        if self.is_fold:
            starts = [e.value(child) for child in self.node.inputs[: len(self.types)]]
            values = [v.names[0] for v in starts]
            poison = next((v.poison for v in starts if v.poison), None)
        for type_, value in zip(self.passed_types, values, strict=True):
            self.state.append(e.declare(lines, type_, value, "acc", constant=False))
        if self.levels:
            more = [e.declare(lines, self.types[0], values[0], "block", constant=False) for _ in range(self.levels)]
            self.blocks, self.count = [*self.state, *more], e.declare(lines, "int", "0", "count", constant=False)
        self.may_poison = poison is not None
        self.poison = e.declare(lines, "int", poison or "0", "poison", constant=False)

    def combine_element(self) -> None:
        """Emit the step of the innermost loop; NaN is no element of argmin and argmax."""
        e = self.emitter
        values = [e.value(child) for child in self.node.inputs[len(self.types) if self.is_fold else 0 :]]
        poison = e.merge_poison([v.poison for v in values], e.blocks[-1])
        if poison:
            self.may_poison = True
            e.line(f"{self.poison} = {self.poison} != 0 ? {self.poison} : {poison};")
        element, condition = [v.names[0] for v in values], ""
        if self.is_arg_extremum:
            best, *indices = element
            condition = f"{best} == {best}"
            element = [
                e.dialect.cast("int", index) if variable.type == "uint" else index
                for index, variable in zip(indices, self.variables, strict=True)
            ]
            element.append(best)
        if not self.has_start:
            element.append("1")
        e.blocks[-1].lines += self.combine(self.state, element, condition, self.poison)
        self.may_poison |= self.reduction.function is not None and has_loops(self.reduction.function)

    def combine(self, state: list[str], later: list[str], condition: str, poison: str = "") -> list[str]:
        """Lines that combine the passed values `later`, if `condition`, into `state`, which is before them in order.

        The first of equal values is the extremum.
        """
        e, reduction, count = self.emitter, self.reduction, len(self.types)
        if self.is_compensated:
            return self.add_exactly(state, later)
        if reduction.function is None and not self.is_arg_extremum:
            return [f"{state[0]} = {self.combined(state[0], later[0])};", *self.end_blocks()]
        call = [] if poison else ["int ignored = 0;"]
        if reduction.function is not None:
            arguments = [*state[:count], *(later if self.is_fold else later[:count])]
            argument = e.dialect.poison_address + (poison or "ignored")
            results = e.call_function(reduction.function, arguments, argument, call)
            call += [f"{s} = {r};" for s, r in zip(state[:count], results, strict=True)]
        if self.is_fold:
            return ["{", *indented(call), "}"]
        stores = " ".join(f"{a} = {b};" for a, b in zip(state, later, strict=True))
        if self.is_arg_extremum:
            sign = "<" if reduction.name == "argmin" else ">"
            return [f"if ({condition} && ({state[-1]} == 0 || {later[-2]} {sign} {state[-2]})) {{ {stores} }}"]
        lines = [f"if ({state[-1]} == 0) {{ {stores} }} else {{", *indented(call), "}"]
        return [f"if ({condition}) {{", *indented(lines), "}"] if condition else lines

    def combined(self, before: str, later: str) -> str:
        """An operator of the language on two numbers."""
        type_, name, dialect = self.types[0], self.reduction.name, self.emitter.dialect
        if name in dialect.reducers:
            return dialect.reducers[name].format(before, later)
        return operation_text(dialect, name, type_, type_, [before, later])

    def end_blocks(self) -> list[str]:
        """Lines that pass on the values of the blocks that the last element filled."""
        if not self.levels:
            return []
        neutral = neutral_text(self.reduction.name, self.types[0], self.emitter.dialect)
        lines, size = [f"{self.count}++;"], BLOCK
        for block, above in itertools.pairwise(self.blocks):
            lines.append(f"if (({self.count} & {size - 1}) == 0) {{ {above} = {self.combined(above, block)};")
            lines.append(f"    {block} = {neutral};")
            size *= BLOCK
        return [*lines, "}" * self.levels]

    def combine_passed(self, state: list[str], later: list[str]) -> list[str]:
        """Lines that combine what a later thread passed on into `state`."""
        return ["// one thread folds all elements"] if self.is_fold else self.combine(state, later, f"{later[-1]} != 0")

    def add_exactly(self, state: list[str], later: list[str]) -> list[str]:
        """Lines that add a number, or a sum and what it lost, to a sum and what it lost."""
        (total, lost), number, type_ = state, later[0], self.types[0]
        more = f" + {later[1]}" if len(later) > 1 else ""
        return [
            f"{{ const {type_} term = {number}, sum = {total} + term, part = sum - {total};",
            f"  {lost} += ({total} - (sum - part)) + (term - part){more};",
            f"  {total} = sum; }}",
        ]

    def result(self, state: list[str]) -> list[str]:
        """The result's components from a state; a sum that is infinite has lost NaN."""
        if self.levels:
            total = self.blocks[0]
            for block in self.blocks[1:]:
                total = self.combined(block, total)
            return [total]
        if not self.is_compensated:
            return state[: len(self.types)]
        total, lost = state
        return [f"({lost} - {lost} == 0 ? {total} + {lost} : {total})"]

    @property
    def result_poison(self) -> str | None:
        """The variable with the poison of the result, or None if it has none."""
        return self.poison if self.may_poison else None


class Emitter(ExpressionEmitter):
    """Emits expressions with reductions, which become loops, and the lines of one element of a kernel's result."""

    component = ""  # of a vector of elements that is being emitted; "" for a single element

    def bind_element(self, variables: tuple[BoundVariable, ...]) -> None:
        """Bind the variables of the element at `linear_index`."""
        self.delinearize(variables, "linear_index")

    def element(self, variables: tuple[BoundVariable, ...], emit: Callable[[], None]) -> list[str]:
        """The lines that `emit` emits for one element, in a block of their own."""
        with self.block() as block:
            self.bind_element(variables)
            emit()
        return block.lines

    def vector(
        self, variables: tuple[BoundVariable, ...], emit: Callable[[], None], outputs: tuple[str, ...] = ()
    ) -> list[str]:
        """The lines for the four elements at `vector_index`; none if elements are computed one by one."""
        return []

    def reduce(self, node: Node) -> EmittedValue:
        """Emit a reduction as loops; a closed one is loaded."""
        if not node.free_variables:
            return self.load_scalar_result(node)
        depth = self.blocks.index(self.hoist_target(node))
        outer, self.blocks = self.blocks, self.blocks[: depth + 1]
        loop = LoopReduction(self, node)
        loop.start()
        variables = node.attribute[1]
        if self.dialect.unrolls_loops and is_small(variables):
            self.combine_each(loop)
            variables = ()
        for variable in variables:
            self.blocks.append(Block())
            self.define(variable, self.fresh(variable.name if variable.name.isalnum() else "i"))
        if variables:
            loop.combine_element()
        for variable in reversed(variables):
            body = self.blocks.pop().lines
            if self.dialect.may_leave_loops and variable.range.size > MAX_GLSL_ROUNDS:
                loop.may_poison = True
                (low, high), name = self.loop_bounds(variable), self.variable_names[variable]
                first = self.fresh("first")
                self.blocks[-1].lines += unrolled_loop(variable.type, name, low, high, body, first, loop.poison)
            else:
                self.blocks[-1].lines += loop_lines(self, variable, body)
        names = loop.result(loop.state)
        if loop.is_compensated or loop.levels:
            names = [self.declare(self.blocks[-1].lines, loop.types[0], names[0])]
        self.blocks = outer
        return EmittedValue(tuple(names), loop.result_poison)

    def combine_each(self, loop: LoopReduction) -> None:
        """Emit the elements of a reduction one after another: compilers vectorize a loop around them then."""
        ranges = [range(variable.range.low, variable.range.high) for variable in loop.variables]
        for point in itertools.product(*ranges):
            self.blocks.append(Block())
            for variable, number in zip(loop.variables, point, strict=True):
                self.define(variable, literal(number, variable.type, self.dialect))
            loop.combine_element()
            lines = self.blocks.pop().lines
            self.blocks[-1].lines += lines

    def loop_bounds(self, variable: BoundVariable) -> tuple[str, str]:
        """The half-open bounds of a loop; short ones are literals, so that the compiler unrolls the loop."""
        range_ = variable.range
        suffix = "u" if variable.type == "uint" else ""
        if range_.size <= MAX_UNROLLED_EXTENT:
            return f"{range_.low}{suffix}", f"{range_.high}{suffix}"
        high = self.argument((variable.unique_id, "high"), variable.type, range_.high, "h")
        if range_.low == 0:
            return f"0{suffix}", high
        return self.argument((variable.unique_id, "low"), variable.type, range_.low, "l"), high


def is_small(variables: tuple[BoundVariable, ...]) -> bool:
    """Whether a reduction has so few elements that each of them may be in the text."""
    return 0 < math.prod(v.range.size for v in variables) <= MAX_ELEMENTS_IN_TEXT


def loop_lines(emitter: Emitter, variable: BoundVariable, body: list[str]) -> list[str]:
    """The loop over the range of a variable that is bound."""
    (low, high), name = emitter.loop_bounds(variable), emitter.variable_names[variable]
    return [f"for ({variable.type} {name} = {low}; {name} < {high}; {name}++) {{", *indented(body), "}"]


def unrolled_loop(type_: str, name: str, low: str, high: str, body: list[str], first: str, poison: str) -> list[str]:
    """A long loop of GLSL, with poison if the driver leaves it before its end; see GlslDialect.may_leave_loops."""
    step, more = f"{UNROLLED_ROUNDS}{'u' if type_ == 'uint' else ''}", f"{first} < {high}"
    return [
        f"{type_} {first} = {low};",
        f"for (; {more}; {first} += {step}) {{",
        f"    for (int step = 0; step < {UNROLLED_ROUNDS}; step++) {{",
        f"        {type_} {name} = {first} + {type_}(step);",
        f"        if ({name} < {high}) {{",
        *indented(indented(indented(body))),
        "        }",
        "    }",
        "}",
        f"if ({more}) {poison} = {DRIVER_LIMIT_STATUS};",
    ]


class ElementwiseEmitter(Emitter):
    """Loads arrays at `linear_index`, or, while `component` is set, from that component of a loaded vector."""

    def access(self, node: Node) -> EmittedValue:
        """Emit loads of an array's components."""
        source, block = self.input_of(without_lets(node.inputs[0])), self.hoist_target(node)
        names = []
        for k, type_ in enumerate(source.types):
            element = self.dialect.load(source.buffer(k), "linear_index", type_)
            if self.component:
                element = self.dialect.loaded(type_, f"{source.buffer(k)}_vector.{self.component}")
            names.append(self.declare(block.lines, type_, element))
        return EmittedValue(tuple(names))

    def bind_element(self, variables: tuple[BoundVariable, ...]) -> None:
        """Bind the variables of the element at `linear_index`, whose coordinates nothing needs."""
        for variable in variables:
            self.define(variable, "linear_index")

    def vector(
        self, variables: tuple[BoundVariable, ...], emit: Callable[[], None], outputs: tuple[str, ...] = ()
    ) -> list[str]:
        """Vector loads, then each element; none unless all arrays and `outputs` hold numbers of 4 bytes or less."""
        types = [type_ for source in self.inputs.values() for type_ in source.types]
        if not all(type_ in VECTOR_TYPES for type_ in (*types, *outputs)):
            return []
        elements = []
        for component in VECTOR:
            self.component = component
            elements += ["{", *indented(self.element(variables, emit)), "}"]
        self.component = ""
        loads = [
            f"const {type_}4 {source.buffer(k)}_vector = ((GLOBAL const {type_}4 *){source.buffer(k)})[vector_index];"
            for source in self.inputs.values()
            for k, type_ in enumerate(map(storage_type, source.types))
        ]
        return [*loads, *elements]


def is_elementwise(variables: tuple[BoundVariable, ...], bodies: tuple[Node, ...], ranges_of: RangesOf) -> bool:
    """Whether all arrays are read at the very index that is written, so that indices need no decoding."""
    box = [(v.range.low, v.range.high) for v in variables]
    nodes = [node for body in bodies for node in order_within_scope(body)]
    reads = 0
    for node in nodes:
        if node.op == "reduce" and node.free_variables:
            return False
        if node.op != "apply" or not isinstance(node.attribute, Access):
            continue
        indices = [index.attribute if index.op == "variable" else None for index in node.inputs[1:]]
        ranges = ranges_of(without_lets(node.inputs[0]))
        if indices != list(variables) or [(r.low, r.high) for r in ranges] != box:
            return False
        reads += 1
    users = [node for node in nodes for child in node.inputs if child.op == "variable"]
    only_read = all(isinstance(user.attribute, Access) for user in users)
    return reads > 0 and only_read and not any(body.op == "variable" for body in bodies)


def emitter_of(
    variables: tuple[BoundVariable, ...], bodies: tuple[Node, ...], ranges_of: RangesOf, dialect: CDialect
) -> Emitter:
    """The emitter of a kernel that computes `bodies` at each point of the variables' box."""
    elementwise = is_elementwise(variables, bodies, ranges_of)
    return (ElementwiseEmitter if elementwise else Emitter)(dialect, ranges_of)
