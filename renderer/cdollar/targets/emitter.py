"""Emits reductions inside kernels as loops: state variables before, one step inside, a value after."""

from __future__ import annotations

from collections.abc import Callable

from renderer.cdollar.ir.dag import BoundVariable, Node, scalar_types
from renderer.cdollar.targets.device_functions import has_loops
from renderer.cdollar.targets.dialects import indented, literal, neutral_text, operation_text
from renderer.cdollar.targets.expression_emitter import Block, EmittedValue, ExpressionEmitter

MAX_UNROLLED_EXTENT = 16  # a reduction over at most this many indices has its bounds in the text, to be unrolled


class LoopReduction:
    """The state of a reduction of one thread.

    `state` names the variables of the result, of `types`. `best` is the compared value of argmin and argmax. `first` is
    true until an element was combined, for reductions without a neutral element. `passed_types` are those of what a
    thread passes on: the result, the compared value, and whether there is any.
    """

    def __init__(self, emitter: ExpressionEmitter, node: Node) -> None:
        """Reduce `node` in the blocks of `emitter`."""
        self.emitter, self.node = emitter, node
        self.reduction, self.variables = node.attribute
        self.types = scalar_types(node)
        self.is_arg_extremum = self.reduction.name in ("argmin", "argmax")
        has_start = self.reduction.function is None or self.reduction.name == "fold"
        self.has_first = self.is_arg_extremum or not has_start
        best = (node.inputs[0].type,) if self.is_arg_extremum else ()
        self.passed_types = (*self.types, *best, *(("int",) if self.has_first else ()))
        self.state: list[str] = []
        self.best = self.first = self.poison = ""
        self.may_poison = False

    def start(self) -> None:
        """Emit the state's variables."""
        e, lines = self.emitter, self.emitter.blocks[-1].lines
        poison = None
        if self.is_arg_extremum:
            type_ = self.node.inputs[0].type
            self.best = e.declare(lines, type_, literal(0, type_, e.dialect), "best", constant=False)
        if self.reduction.name == "fold":
            starts = [e.value(child) for child in self.node.inputs[: len(self.types)]]
            values = [v.names[0] for v in starts]
            poison = next((v.poison for v in starts if v.poison), None)
        else:
            values = [neutral_text(self.reduction.name, type_, e.dialect) for type_ in self.types]
        for type_, value in zip(self.types, values, strict=True):
            self.state.append(e.declare(lines, type_, value, "acc", constant=False))
        if self.has_first:
            self.first = e.declare(lines, "bool", "true", "first", constant=False)
        self.may_poison = poison is not None
        self.poison = e.declare(lines, "int", poison or "0", "poison", constant=False)

    def combine_element(self) -> None:
        """Emit the step of the innermost loop."""
        e, name = self.emitter, self.reduction.name
        inputs = self.node.inputs[len(self.types) :] if name == "fold" else self.node.inputs
        values = [e.value(child) for child in inputs]
        poison = e.merge_poison([v.poison for v in values], e.blocks[-1])
        if poison:
            self.may_poison = True
            e.line(f"{self.poison} = {self.poison} != 0 ? {self.poison} : {poison};")
        names = [v.names[0] for v in values]
        if self.is_arg_extremum:
            self.combine_arg_extremum(names)
        elif self.reduction.function is not None:
            self.combine_by_function(names)
        else:
            text = operation_text(e.dialect, name, self.types[0], self.types[0], [self.state[0], names[0]])
            e.line(f"{self.state[0]} = {text};")

    def combine_arg_extremum(self, names: list[str]) -> None:
        """Emit the step of argmin and argmax: the first of equal values wins, NaN never does."""
        e = self.emitter
        sign = "<" if self.reduction.name == "argmin" else ">"
        e.line(f"if ({names[0]} == {names[0]} && ({self.first} || {names[0]} {sign} {self.best})) {{")
        e.line(f"    {self.first} = false; {self.best} = {names[0]};")
        for state, name, variable in zip(self.state, names[1:], self.variables, strict=True):
            e.line(f"    {state} = {e.dialect.cast('int', name) if variable.type == 'uint' else name};")
        e.line("}")

    def combine_by_function(self, names: list[str]) -> None:
        """Emit the step of a reduction by a device function; the first element becomes the state."""
        e, function = self.emitter, self.reduction.function
        opening = "{"
        lines: list[str] = []
        if self.first:
            stores = " ".join(f"{s} = {n};" for s, n in zip(self.state, names, strict=True))
            opening = f"if ({self.first}) {{ {self.first} = false; {stores} }} else {{"
        results = e.call_function(function, [*self.state, *names], e.dialect.poison_address + self.poison, lines)
        lines += [f"{s} = {r};" for s, r in zip(self.state, results, strict=True)]
        e.blocks[-1].lines += [opening, *indented(lines), "}"]
        self.may_poison |= has_loops(function)

    def passed_values(self) -> list[str]:
        """What a thread passes on after its loop."""
        best = [self.best] if self.is_arg_extremum else []
        return [*self.state, *best, *([f"({self.first} ? 0 : 1)"] if self.has_first else [])]

    def combine(self, state: list[str], later: list[str]) -> list[str]:
        """Lines that combine the passed values `later`, which come later in the order, into `state`."""
        e, reduction = self.emitter, self.reduction
        stores = " ".join(f"{a} = {b};" for a, b in zip(state, later, strict=True))
        if self.is_arg_extremum:
            sign = "<" if reduction.name == "argmin" else ">"
            return [f"if ({later[-1]} != 0 && ({state[-1]} == 0 || {later[-2]} {sign} {state[-2]})) {{ {stores} }}"]
        if reduction.name == "fold":
            return ["// one thread folds all elements"]
        if reduction.function is None:
            type_ = self.types[0]
            return [f"{state[0]} = {operation_text(e.dialect, reduction.name, type_, type_, [state[0], later[0]])};"]
        lines = ["int ignored = 0;"] if has_loops(reduction.function) else []
        arguments = [*state[:-1], *later[:-1]]
        results = e.call_function(reduction.function, arguments, e.dialect.poison_address + "ignored", lines)
        lines += [f"{s} = {r};" for s, r in zip(state[:-1], results, strict=True)]
        return [
            f"if ({later[-1]} != 0 && {state[-1]} != 0) {{",
            *indented(lines),
            f"}} else if ({later[-1]} != 0) {{ {stores} }}",
        ]

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
        for variable in variables:
            self.blocks.append(Block())
            self.define(variable, self.fresh(variable.name if variable.name.isalnum() else "i"))
        loop.combine_element()
        for variable in reversed(variables):
            body = self.blocks.pop().lines
            low, high = self.loop_bounds(variable)
            name, type_ = self.variable_names[variable], variable.type
            self.line(f"for ({type_} {name} = {low}; {name} < {high}; {name}++) {{")
            self.blocks[-1].lines += indented(body)
            self.line("}")
        self.blocks = outer
        return EmittedValue(tuple(loop.state), loop.result_poison)

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
