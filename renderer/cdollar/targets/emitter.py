"""Emits the body of a kernel: reductions as loops, and the stores of results, around expression_emitter.py's text.

The planners (map_kernels.py, reduction_kernels.py, cpu_kernels.py, matmul_kernels.py) get an Emitter from
choose_emitter(). An elementwise kernel reads all arrays at the linear index that it writes; its ElementwiseEmitter
needs no coordinates, and reads four elements at a time if their types allow it. The poison of an expression is an int
variable of the kernel: 0, or the number of the error that the computation met (expression_emitter.py).
"""

import itertools
import math
from collections.abc import Callable

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.contraction import tested_ends
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.targets.accumulator import Accumulator
from renderer.cdollar.targets.device_functions import DRIVER_LIMIT_STATUS
from renderer.cdollar.targets.dialects import CDialect, indented, literal, storage_type
from renderer.cdollar.targets.expression_emitter import EmittedValue, ExpressionEmitter, StoredRanges

VECTOR_TYPES = ("float", "int", "uint", "half", "byte")  # types of elements that are read four at a time
VECTOR = "xyzw"  # components of a vector of four elements
MAX_GLSL_ROUNDS = 4096  # a longer loop in GLSL is split into an outer loop and an inner one that drivers unroll
UNROLLED_ROUNDS = 32  # rounds of the inner loop
MAX_ELEMENTS_IN_TEXT = 64  # elements of a reduction that a CPU kernel's text repeats one by one
MAX_UNROLLED_EXTENT = 16  # a reduction over at most this many indices has its bounds in the text, to be unrolled


class Emitter(ExpressionEmitter):
    """Emits expressions with reductions, which become loops, and the stores of one element of a kernel's result."""

    component = ""  # the vector component that is emitted now; "" for a single element

    # Reductions

    def reduce(self, node: ir.Node) -> EmittedValue:
        """Emit a reduction as loops; without free variables a separate kernel computes it, whose result is loaded."""
        if not node.free_variables:
            return self.load_scalar_result(node)
        with self.within(self.hoist_target(node)):  # the outermost scope that binds all free variables of the node
            accumulator = Accumulator(self, node)
            accumulator.start()
            if self.dialect.unrolls_loops and is_small(accumulator.variables):
                self.combine_each(accumulator)
            else:
                ends = {} if accumulator.levels else tested_ends(node).ends  # blocks of a strict sum count all elements
                self.combine_in_loops(accumulator, accumulator.variables, ends)
            names = accumulator.result(accumulator.state)
            if accumulator.is_compensated or accumulator.levels:
                names = [self.declare(self.lines, accumulator.types[0], names[0])]
        return EmittedValue(tuple(names), accumulator.result_poison)

    def combine_in_loops(
        self, accumulator: Accumulator, variables: ir.Variables, ends: dict[ir.BoundVariable, dict[str, list[ir.Node]]]
    ) -> None:
        """Emit loops over the variables, the last one innermost, with the step of the reduction inside them."""
        if not variables:
            accumulator.combine_element()
            return
        variable, *inner = variables
        with self.scope() as body:
            self.bind_loop_variable(variable)
            self.combine_in_loops(accumulator, tuple(inner), ends)
        bounds = self.loop_bounds(variable)
        if variable in ends and variable.range.size > MAX_UNROLLED_EXTENT:
            bounds = self.tighter(variable.type, bounds, ends[variable])
        if self.dialect.may_leave_loops and variable.range.size > MAX_GLSL_ROUNDS:
            accumulator.may_poison = True
            name, first = self.variable_names[variable], self.fresh("first")
            self.emit(*unrolled_loop(variable.type, name, *bounds, body.lines, first, accumulator.poison))
        else:
            self.emit(*self.loop(variable, body.lines, bounds))

    def tighter(self, type_: str, bounds: tuple[str, str], ends: dict[str, list[ir.Node]]) -> tuple[str, str]:
        """The bounds of a loop, cut to those `ends` (tested_ends() in ir/contraction.py) that have its type."""
        cut = []
        for bound, function, nodes in zip(bounds, ("max", "min"), (ends[">="], ends["<"]), strict=True):
            for node in nodes:
                if node.type == type_:
                    bound = f"{function}({bound}, {self.value(node).names[0]})"
            cut.append(self.declare(self.lines, type_, bound, function))
        return cut[0], cut[1]

    def combine_each(self, accumulator: Accumulator) -> None:
        """Emit the elements of a reduction one after another, so that compilers can vectorize a loop around them."""
        ranges = [range(variable.range.low, variable.range.high) for variable in accumulator.variables]
        for point in itertools.product(*ranges):
            with self.scope() as element:
                for variable, number in zip(accumulator.variables, point, strict=True):
                    self.bind(variable, literal(number, variable.type, self.dialect))
                accumulator.combine_element()
            self.emit(*element.lines)

    def bind_loop_variable(self, variable: ir.BoundVariable) -> None:
        """Bind the variable of a loop to a new C name."""
        self.bind(variable, self.fresh(variable.name if variable.name.isalnum() else "i"))

    def loop(self, variable: ir.BoundVariable, body: list[str], bounds: tuple[str, str] | None = None) -> list[str]:
        """Return the lines of a loop over the range of a bound variable, or `bounds` inside it, around `body`."""
        (low, high), name = bounds or self.loop_bounds(variable), self.variable_names[variable]
        return [f"for ({variable.type} {name} = {low}; {name} < {high}; {name}++) {{", *indented(body), "}"]

    def loop_bounds(self, variable: ir.BoundVariable) -> tuple[str, str]:
        """The half-open bounds of a loop: literals for a short loop, which the compiler unrolls, else arguments."""
        range_ = variable.range
        suffix = "u" if variable.type == "uint" else ""
        if range_.size <= MAX_UNROLLED_EXTENT:
            return f"{range_.low}{suffix}", f"{range_.high}{suffix}"
        high = self.argument((variable.unique_id, "high"), variable.type, range_.high, "h")
        if range_.low == 0:
            return f"0{suffix}", high
        return self.argument((variable.unique_id, "low"), variable.type, range_.low, "l"), high

    # Elements of the result

    def bind_element(self, variables: ir.Variables) -> None:
        """Bind the variables to the coordinates of the element at `linear_index`."""
        self.delinearize(variables, "linear_index")

    def element(self, variables: ir.Variables, emit: Callable[[], None]) -> list[str]:
        """Return what `emit` emits in a new scope, with `variables` bound to the element at `linear_index`."""
        with self.scope() as scope:
            self.bind_element(variables)
            emit()
        return scope.lines

    def vector(self, variables: ir.Variables, emit: Callable[[], None], outputs: tuple[str, ...] = ()) -> list[str]:
        """Return the lines for the four elements at `vector_index`; [] if elements are computed one by one."""
        return []

    def emit_stores(self, node: ir.Node) -> str | None:
        """Emit a function's bodies and their stores at `linear_index`; return the variable of their poison, or None."""
        values = [self.value(body) for body in node.inputs]
        poison = self.merge_poison([v.poison for v in values], self.lines)
        for k, value in enumerate(values):
            target = f"out{k}_vector.{self.component}" if self.component else f"out{k}[linear_index]"
            self.emit(f"{target} = {self.dialect.stored(node.inputs[k].type, value.names[0])};")
        return poison


def is_small(variables: ir.Variables) -> bool:
    """True if a reduction has so few elements that the text may repeat each of them."""
    return math.prod(v.range.size for v in variables) in range(1, MAX_ELEMENTS_IN_TEXT + 1)


def unrolled_loop(type_: str, name: str, low: str, high: str, body: list[str], first: str, poison: str) -> list[str]:
    """Return a long loop of GLSL as two nested loops; `poison` is set if the driver leaves the loop before its end.

    `first` names the variable of the outer loop. See GlslDialect.may_leave_loops.
    """
    step, condition = f"{UNROLLED_ROUNDS}{'u' if type_ == 'uint' else ''}", f"{first} < {high}"
    return [
        f"{type_} {first} = {low};",
        f"for (; {condition}; {first} += {step}) {{",
        f"    for (int step = 0; step < {UNROLLED_ROUNDS}; step++) {{",
        f"        {type_} {name} = {first} + {type_}(step);",
        f"        if ({name} < {high}) {{",
        *indented(indented(indented(body))),
        "        }",
        "    }",
        "}",
        f"if ({condition}) {poison} = {DRIVER_LIMIT_STATUS};",
    ]


class ElementwiseEmitter(Emitter):
    """Loads arrays at `linear_index`, or, while `component` is set, from that component of a loaded vector."""

    def access(self, node: ir.Node) -> EmittedValue:
        """Emit the loads of an array's components at the element that is computed."""
        source, scope = self.kernel_input(ir.without_lets(node.inputs[0])), self.hoist_target(node)
        names = []
        for k, type_ in enumerate(source.types):
            element = self.dialect.load(source.buffer(k), "linear_index", type_)
            if self.component:
                element = self.dialect.loaded(type_, f"{source.buffer(k)}_vector.{self.component}")
            names.append(self.declare(scope.lines, type_, element))
        return EmittedValue(tuple(names))

    def bind_element(self, variables: ir.Variables) -> None:
        """Bind all variables to `linear_index`: no text of an elementwise kernel needs their coordinates."""
        for variable in variables:
            self.bind(variable, "linear_index")

    def vector(self, variables: ir.Variables, emit: Callable[[], None], outputs: tuple[str, ...] = ()) -> list[str]:
        """Return vector loads, then the lines of each element; [] if a type is not one of VECTOR_TYPES."""
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


def is_elementwise(variables: ir.Variables, bodies: ir.Nodes, stored_ranges: StoredRanges) -> bool:
    """True if all arrays are read at the index that is written, so that indices need no decoding."""
    nodes = [node for body in bodies for node in order_within_scope(body)]
    reads = [node for node in nodes if isinstance(node.attribute, ir.Access)]
    if not reads or any(node.op == "reduce" and node.free_variables for node in nodes):
        return False
    if not all(ir.reads_in_place(n, variables, stored_ranges(ir.without_lets(n.inputs[0]))) for n in reads):
        return False
    # Coordinates may occur as indices of reads only: neither as a result nor in arithmetic.
    if any(body.op == "variable" for body in bodies):
        return False
    users = [node for node in nodes for child in node.inputs if child.op == "variable"]
    return all(isinstance(user.attribute, ir.Access) for user in users)


def choose_emitter(
    variables: ir.Variables, bodies: ir.Nodes, stored_ranges: StoredRanges, dialect: CDialect
) -> Emitter:
    """Return the emitter for a kernel that computes `bodies` at each point of the variables' box."""
    elementwise = is_elementwise(variables, bodies, stored_ranges)
    return (ElementwiseEmitter if elementwise else Emitter)(dialect, stored_ranges)
