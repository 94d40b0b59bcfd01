"""Emits the text of one thread's reduction (a sum, an argmin, a fold) for kernels on GPUs, CPUs and in GLSL.

The reduction kernels call start() for the variables of the partial result, combine_element() for the step of the
innermost loop, combine_partials() for two threads' partial results, and result() or stored_result() for the value.
Long float sums are compensated: they carry their rounding errors, which costs 3 operations per element more than
Kahan's sum, but is right for terms of any size (Neumaier 1974, Knuth's 2Sum). Poison is an int beside a value: 0, or
the number of the bounds check or loop that failed (expression_emitter.py).
"""

import itertools
import math

from renderer.cdollar.ir.contraction import tested_ends
from renderer.cdollar.ir.dag import Node, scalar_types
from renderer.cdollar.ir.types import FLOATS, promoted_type
from renderer.cdollar.targets.dialects import indented, neutral_text, operation_text, storage_type
from renderer.cdollar.targets.expression_emitter import ExpressionEmitter
from renderer.cdollar.targets.strict_order import BLOCK, adds_in_blocks, level_count

MIN_COMPENSATED_LENGTH = 4096  # elements from which a float sum carries its rounding errors


class Accumulator:
    """A reduction's variables in the text of one thread.

    `state` names the variables of the thread's partial result, in this order: the components of the result, which have
    `types`; then, where they apply, the compared value (argmin, argmax), the rounding errors (compensated sums), and a
    flag that is 1 once an element was combined (reductions without a start value: argmin, argmax, user functions).
    `partial_types` are the types of all of them. A strict sum is added in blocks of BLOCK elements (strict_order.py):
    `levels` names a variable for the unfinished block of each level, from the lowest, which is the state. It is empty
    if one level suffices, and before start(). A kernel that adds partial results of a strict sum in blocks calls
    start(), so that combine() counts them as elements; other kernels that combine partial results do not. `poison`
    names the variable of the reduction's poison; `may_poison` is False if it stays 0.
    """

    def __init__(self, emitter: ExpressionEmitter, node: Node, chunk: int | None = None) -> None:
        """Prepare the reduction `node` in the innermost scope of `emitter`.

        `chunk` is the number of elements that one thread reduces, by default all elements of the reduction.
        """
        self.emitter, self.node = emitter, node
        self.reduction, self.variables = node.attribute
        self.types = scalar_types(node)
        extremum = (node.inputs[0].type,) if self.reduction.is_arg_extremum else ()
        self.has_start = self.reduction.is_fold or self.reduction.is_operator
        is_float_sum = self.reduction.name == "+" and self.types[0] in FLOATS
        elements = math.prod(variable.range.size for variable in self.variables)
        is_strict = adds_in_blocks(self.reduction, node.type, emitter.dialect.strict)
        self.level_count = level_count(chunk or elements) - 1 if is_strict else 0  # levels above the first
        self.is_compensated = is_float_sum and not is_strict and elements >= MIN_COMPENSATED_LENGTH
        self.is_compensated &= emitter.dialect.keeps_rounding
        errors = self.types if self.is_compensated else ()
        types = (*self.types, *extremum, *errors, *(() if self.has_start else ("int",)))
        self.partial_types = tuple(map(promoted_type, types))
        self.state: list[str] = []
        self.levels: list[str] = []
        self.count = ""  # the variable that counts the added elements, if there are levels
        self.poison = ""
        self.may_poison = False

    @property
    def storage_types(self) -> list[str]:
        """The C types of a partial result in arrays."""
        return list(map(storage_type, self.partial_types))

    def start(self) -> None:
        """Emit the variables with their start values."""
        e = self.emitter
        poison = None
        values = [neutral_text(self.reduction.name, type_, e.dialect) for type_ in self.partial_types]
        if self.reduction.is_fold:
            starts = [e.value(child) for child in self.node.inputs[: len(self.types)]]
            values = [v.names[0] for v in starts]
            poison = e.merge_poison([v.poison for v in starts], e.lines)
        for type_, value in zip(self.partial_types, values, strict=True):
            self.state.append(e.declare(e.lines, type_, value, "acc", constant=False))
        if self.level_count:
            upper = [e.declare(e.lines, self.types[0], values[0], "block", constant=False)
                     for _ in range(self.level_count)]  # fmt: skip
            self.levels, self.count = [*self.state, *upper], e.declare(e.lines, "int", "0", "count", constant=False)
        self.may_poison = poison is not None
        self.poison = e.declare(e.lines, "int", poison or "0", "poison", constant=False)
        # Range checks of ends that arrays hold, as in `sum(a(k), k : p(i)..p(i + 1))`: they pass or fail alike for all
        # elements, so they are not in the loop.
        for check in tested_ends(self.node).checks:
            self.add_poison(e.take_poison(check))

    def add_poison(self, poison: str | None) -> None:
        """Emit that a poison belongs to the result."""
        if poison:
            self.may_poison = True
            self.emitter.emit(f"{self.poison} = {self.poison} != 0 ? {self.poison} : {poison};")

    def combine_element(self) -> None:
        """Emit the lines that combine the current element into the state; argmin and argmax skip NaN."""
        e = self.emitter
        values = [e.value(child) for child in self.node.inputs[len(self.types) if self.reduction.is_fold else 0 :]]
        self.add_poison(e.merge_poison([v.poison for v in values], e.lines))
        element, condition = [v.names[0] for v in values], ""
        if self.reduction.is_arg_extremum:
            compared, *indices = element
            condition = f"{compared} == {compared}"
            element = [
                e.dialect.cast("int", index) if variable.type == "uint" else index
                for index, variable in zip(indices, self.variables, strict=True)
            ]
            element.append(compared)
        if not self.has_start:
            element.append("1")
        e.emit(*self.combine(self.state, element, condition, self.poison))
        self.may_poison |= self.reduction.function is not None and self.reduction.function.can_fail

    def combine(self, state: list[str], later: list[str], condition: str, poison: str = "") -> list[str]:
        """Return lines that combine `later`, an element or a partial result, into `state`, if `condition` holds.

        The elements of `state` precede the elements of `later` in the reduction's order. Of equal values the first is
        the extremum: state[-2] is the compared value there, state[-1] the flag. Operators ignore `condition`. `poison`
        names the variable that a call of a user function poisons; "" ignores such poison.
        """
        e, reduction, count = self.emitter, self.reduction, len(self.types)
        if self.is_compensated:
            return self.add_compensated(state, later)
        if reduction.is_operator:
            return [f"{state[0]} = {self.combined(state[0], later[0])};", *self.end_blocks()]
        call = [] if poison else ["int ignored = 0;"]
        if reduction.function is not None:
            arguments = [*state[:count], *(later if reduction.is_fold else later[:count])]
            argument = e.dialect.poison_address + (poison or "ignored")
            results = e.call_function(reduction.function, arguments, argument, call)
            call += [f"{s} = {r};" for s, r in zip(state[:count], results, strict=True)]
        if reduction.is_fold:
            return ["{", *indented(call), "}"]
        stores = " ".join(f"{a} = {b};" for a, b in zip(state, later, strict=True))
        if reduction.is_arg_extremum:
            sign = "<" if reduction.name == "argmin" else ">"
            return [f"if ({condition} && ({state[-1]} == 0 || {later[-2]} {sign} {state[-2]})) {{ {stores} }}"]
        lines = [f"if ({state[-1]} == 0) {{ {stores} }} else {{", *indented(call), "}"]
        return [f"if ({condition}) {{", *indented(lines), "}"] if condition else lines

    def combined(self, before: str, later: str) -> str:
        """The text of the operator applied to two numbers, `before` and `later` in order."""
        type_, name, dialect = self.types[0], self.reduction.name, self.emitter.dialect
        if name in dialect.reducers:
            return dialect.reducers[name].format(before, later)
        return operation_text(dialect, name, type_, type_, [before, later])

    def end_blocks(self) -> list[str]:
        """Return lines that combine each block that the last element has filled into the block of the level above.

        Each level's `if` stands in the one below: a block of level 1 can be full only if one of level 0 is.
        """
        if not self.levels:
            return []
        neutral = neutral_text(self.reduction.name, self.types[0], self.emitter.dialect)
        lines, size = [f"{self.count}++;"], BLOCK
        for block, above in itertools.pairwise(self.levels):
            lines.append(f"if (({self.count} & {size - 1}) == 0) {{ {above} = {self.combined(above, block)};")
            lines.append(f"    {block} = {neutral};")
            size *= BLOCK
        return [*lines, "}" * self.level_count]

    def combine_partials(self, state: list[str], later: list[str]) -> list[str]:
        """Return lines that combine `later`, the partial result of a thread with later elements, into `state`."""
        if self.reduction.is_fold:
            return ["// one thread folds all elements"]
        return self.combine(state, later, f"{later[-1]} != 0")

    def add_compensated(self, state: list[str], later: list[str]) -> list[str]:
        """Return lines that add `later`, a number, or a sum and its rounding error, to `state`, such a pair."""
        (total, error), number, type_ = state, later[0], self.types[0]
        later_error = f" + {later[1]}" if len(later) > 1 else ""
        return [
            f"{{ const {type_} term = {number}, sum = {total} + term, part = sum - {total};",
            f"  {error} += ({total} - (sum - part)) + (term - part){later_error};",
            f"  {total} = sum; }}",
        ]

    def partial_result(self) -> list[str]:
        """The texts that a thread stores for combine_partials(): its state, or, for a strict sum, its blocks' value."""
        return self.result(self.state) if self.levels else self.state

    def result(self, state: list[str]) -> list[str]:
        """The texts of the result's components, from the final state; an infinite sum's error, NaN, is left out."""
        if self.levels:
            total = self.levels[0]
            for block in self.levels[1:]:
                total = self.combined(block, total)
            return [total]
        if not self.is_compensated:
            return state[: len(self.types)]
        total, error = state
        return [f"({error} - {error} == 0 ? {total} + {error} : {total})"]

    def stored_result(self, state: list[str]) -> list[str]:
        """The texts of the result's components, converted to the types in which arrays store them."""
        dialect = self.emitter.dialect
        return [dialect.stored(type_, value) for type_, value in zip(self.types, self.result(state), strict=True)]

    @property
    def result_poison(self) -> str | None:
        """The variable with the poison of the result, or None if it has none."""
        return self.poison if self.may_poison else None
