"""Emits the device functions that a kernel calls (CUDA: __device__), with their loops and branches, in C or GLSL.

A device function is a C$ function with control flow; ir/device_function.py holds its structured statements, so the
text needs no goto. A loop that exceeds MAX_DEVICE_ITERATIONS is stopped, and the function's result is poisoned with
LOOP_LIMIT_STATUS: an int beside the value, which a kernel reports to the host (expression_emitter.py).
"""

import re
from functools import reduce

from renderer.cdollar.ir import device_function
from renderer.cdollar.ir.dag import Component, Node, Nodes, UserCall, topological_order
from renderer.cdollar.ir.types import component_types
from renderer.cdollar.targets.dialects import CDialect, indented, literal, operation_text

MAX_DEVICE_ITERATIONS = 1 << 24  # rounds of a loop, after which it is stopped
MAX_INLINED_OPERATIONS = 1_000  # the largest function that is inlined: compilers take the square of a text's length
LOOP_LIMIT_STATUS = 1 << 30  # the poison of a value whose loop was stopped
DRIVER_LIMIT_STATUS = LOOP_LIMIT_STATUS + 1  # the poison of a value whose loop the GL driver left early


def identifier(prefix: str, name: str) -> str:
    """Return a valid identifier for any name, also an operator's, without two underscores, which GLSL reserves."""
    return re.sub(r"[\W_]+", "_", f"{prefix}_{name}", flags=re.ASCII)


class FunctionTable:
    """The device functions of one kernel's text, and its source of new names; the base of ExpressionEmitter."""

    def __init__(self, dialect: CDialect) -> None:
        """Start without functions; `dialect` spells the text."""
        self.dialect = dialect
        self.function_names: dict[int, str] = {}
        self.function_text: list[str] = []
        self.has_doubles = False
        self.name_count = 0
        self.check_sites: list[Node] = []  # accesses and range checks, by the number of their check, from 1

    def fresh(self, prefix: str = "v") -> str:
        """Return a new name that starts with `prefix`."""
        self.name_count += 1
        return f"{prefix}{self.name_count}"

    def declare(self, lines: list[str], type_: str, value: str, prefix: str = "v", constant: bool = True) -> str:
        """Append the declaration of a new constant, or variable, to `lines`; return its name."""
        name = self.fresh(prefix)
        lines.append(self.dialect.declaration(type_, name, value, constant))
        return name

    def call_function(
        self, function: device_function.DeviceFunction, arguments: list[str], poison_argument: str, lines: list[str]
    ) -> tuple[str, ...]:
        """Append a call to `lines`; return the names of the result's components.

        `poison_argument` is passed to functions that can fail only.
        """
        name = self.function_name(function)
        text = f"{name}({', '.join([*arguments, poison_argument] if function.can_fail else arguments)})"
        types = component_types(function.result_type)
        if len(types) == 1:
            return (self.declare(lines, types[0], text),)
        result = self.fresh("r")
        lines.append(f"R{name} {result} = {text};")
        return tuple(f"{result}.c{k}" for k in range(len(types)))

    def propagate_poison(
        self, operation: object, poisons: list[str | None], names: list[str], lines: list[str]
    ) -> str | None:
        """Append the poison of an operation's result to `lines`; return its variable, None if no operand has poison.

        `poisons` and `names` are the variables of the operands.
        """
        if not any(poisons):
            return None
        if operation == "select" and any(poisons[1:]):
            taken = f"({names[0]} ? {poisons[1] or '0'} : {poisons[2] or '0'})"
        elif operation in ("&&", "||") and poisons[1]:
            taken = f"({names[0] if operation == '&&' else f'!{names[0]}'} ? {poisons[1]} : 0)"
        else:
            return self.merge_poison(poisons, lines)
        if poisons[0]:
            taken = f"({poisons[0]} != 0 ? {poisons[0]} : {taken})"
        return self.declare(lines, "int", taken, "poison", constant=False)

    def merge_poison(self, poisons: list[str | None], lines: list[str]) -> str | None:
        """Append a variable with the first poison that is not 0 to `lines`; return it, or None without poisons."""
        present = list(dict.fromkeys(p for p in poisons if p))  # the components of a call share its poison
        if len(present) < 2:
            return present[0] if present else None
        text = reduce(lambda rest, p: f"({p} != 0 ? {p} : {rest})", present[-2::-1], present[-1])
        return self.declare(lines, "int", text, "poison", constant=False)

    def checked_index(self, name: str, size: str, node: Node, lines: list[str], poisons: list[str | None]) -> str:
        """The text of an index in 0..size, clamped; its poison, the number of the access `node`, goes to `poisons`."""
        self.check_sites.append(node)
        text = f"({name} < 0 || {name} >= {size}) ? {len(self.check_sites)} : 0"
        poisons.append(self.declare(lines, "int", text, "poison", constant=False))
        return f"clamp_index({name}, {size})"

    def function_name(self, function: device_function.DeviceFunction) -> str:
        """Return the name of a device function; its text is emitted once, after the text of its callees."""
        if function.unique_id not in self.function_names:
            name = identifier(f"u{len(self.function_names)}", function.name)
            self.function_names[function.unique_id] = name
            self.function_text.append(DeviceFunctionEmitter(self, function, name).text())
        return self.function_names[function.unique_id]


class DeviceFunctionEmitter:
    """Emits one device function under `name`; `table` holds the functions that it calls."""

    def __init__(self, table: FunctionTable, function: device_function.DeviceFunction, name: str) -> None:
        """Name the function's parameters and locals."""
        self.table, self.function, self.dialect, self.name = table, function, table.dialect, name
        self.types = component_types(function.result_type)
        # For each loop around a statement: the variable that counts its rounds, and the variable that is not 0 if
        # leave() ran ("" if the driver is trusted to run loops to their end).
        self._loops: list[tuple[str, str]] = []
        self.arrays = {array: identifier(f"a{k}", array.name) for k, array in enumerate(function.arrays)}
        variables = (*function.parameters, *function.locals)
        self.locals = {local: identifier(f"l{k}", local.name) for k, local in enumerate(variables)}

    def text(self) -> str:
        """The function's definition, with the struct that it returns if it returns several components."""
        self.table.has_doubles |= "double" in self.types or any(s.type == "double" for s in self.locals)
        parameters = [f"{s.type} {self.locals[s]}" for s in self.function.parameters]
        if self.function.can_fail:
            parameters.append(self.dialect.poison_parameter)
        lines = []
        for local in self.function.locals:
            zero = literal(0, local.type, self.dialect)
            lines.append(self.dialect.declaration(local.type, self.locals[local], zero, constant=False))
        lines += [f"{array.type} {self.arrays[array]}[{array.size}];" for array in self.arrays]
        lines += self.statements(self.function.body)
        lines.append(self.return_text([literal(0, t, self.dialect) for t in self.types]))
        result, struct = self.types[0], ""
        if len(self.types) > 1:
            result, members = f"R{self.name}", " ".join(f"{t} c{k};" for k, t in enumerate(self.types))
            struct = self.dialect.struct.format(name=result, members=members) + "\n"
        body = "\n".join(indented(lines))
        is_called = self.function.operations > MAX_INLINED_OPERATIONS and not self.dialect.inlines_calls
        prefix = "DEVICE_NOINLINE_ALWAYS" if is_called else "DEVICE"
        return f"{struct}{prefix} {result} {self.name}({', '.join(parameters)}) {{\n{body}\n}}\n"

    def return_text(self, values: list[str]) -> str:
        """The return statement for the values of the result's components."""
        if len(self.types) == 1:
            return f"return {values[0]};"
        stores = " ".join(f"result.c{k} = {v};" for k, v in enumerate(values))
        return f"{{ R{self.name} result; {stores} return result; }}"

    def statements(self, body: tuple[device_function.Statement, ...]) -> list[str]:
        """The lines of statements."""
        return [line for statement in body for line in self.statement(statement)]

    def statement(self, statement: device_function.Statement) -> list[str]:
        """The lines of one statement."""
        if isinstance(statement, device_function.BranchOp):
            return self.branch(statement)
        if isinstance(statement, device_function.LoopOp):
            return self.loop(statement)
        if isinstance(statement, device_function.JumpOp):
            return [self.leave() if statement.kind == "break" else f"{statement.kind};"]
        if isinstance(statement, device_function.ClearOp):
            return [line for array in statement.arrays for line in self.cleared(array)]
        elements = statement.elements if isinstance(statement, device_function.StoreOp) else ()
        lines, values, names = self.values(statement.nodes, elements)
        if isinstance(statement, device_function.StoreOp):
            element_names = iter(names)
            stored = [next(element_names) if isinstance(t, Node) else self.locals[t] for t in statement.targets]
            lines += [f"{name} = {value};" for name, value in zip(stored, values, strict=True)]
        else:
            lines.append(self.return_text(values))
        return ["{", *indented(lines), "}"]

    def cleared(self, array: device_function.LocalArray) -> list[str]:
        """The loop that sets the elements of a local array to 0."""
        k = self.table.fresh("k")
        store = f"{self.arrays[array]}[{k}] = {literal(0, array.type, self.dialect)};"
        return [f"for (int {k} = 0; {k} < {array.size}; {k}++) {{ {store} }}"]

    def branch(self, statement: device_function.BranchOp) -> list[str]:
        """The lines of an if statement."""
        test = self.table.fresh("t")
        lines, (condition,), _ = self.values((statement.condition,))
        head = [f"bool {test};", "{", *indented([*lines, f"{test} = {condition};"]), "}", f"if ({test}) {{"]
        if_true, if_false = self.statements(statement.if_true), self.statements(statement.if_false)
        return [*head, *indented(if_true), *(["} else {", *indented(if_false)] if if_false else []), "}"]

    def loop(self, statement: device_function.LoopOp) -> list[str]:
        """The lines of a loop.

        The step and the test stand at the top of the body, so that `continue` reaches them; the same text is valid C
        and GLSL.
        """
        count = self.table.fresh("round")
        left = self.table.fresh("left") if self.dialect.may_leave_loops else ""
        self._loops.append((count, left))
        stop = f"{self.dialect.poison_variable} = {LOOP_LIMIT_STATUS}; {self.leave()}"
        lines = [f"if ({count} == {MAX_DEVICE_ITERATIONS}) {{ {stop} }}"]
        if statement.step:
            lines += [f"if ({count} != 0) {{", *indented(self.statements(statement.step)), "}"]
        if statement.condition is not None:
            evaluation, (condition,), _ = self.values((statement.condition,))
            # `do` evaluates the condition after the first round: before it an index in the condition may be outside.
            head = "{" if statement.test_first else f"if ({count} != 0) {{"
            lines += [head, *indented([*evaluation, f"if (!{condition}) {{ {self.leave()} }}"]), "}"]
        lines += self.statements(statement.body)
        self._loops.pop()
        loop = [f"for (int {count} = 0; ; {count}++) {{", *indented(lines), "}"]
        if not left:
            return loop
        poison = f"{self.dialect.poison_variable} = {DRIVER_LIMIT_STATUS};"
        # `left` is 0 unless leave() ran. An int, since llvmpipe takes a bool for true here.
        return [f"int {left} = 0;", *loop, f"if ({left} == 0) {poison}"]

    def leave(self) -> str:
        """The statements that leave the innermost loop of the C$ program, and note that they ran."""
        count, left = self._loops[-1]  # count + 1 is never 0
        return f"{left} = {count} + 1; break;" if left else "break;"

    def values(self, roots: Nodes, targets: Nodes = ()) -> tuple[list[str], list[str], list[str]]:
        """Return lines that compute expressions, the names of the values of `roots`, and the names for `targets`.

        `targets` are elements to be assigned. If a root or the index of a target depends on a failed bounds check, the
        lines leave the function.
        """
        emitted: dict[int, tuple[str, ...]] = {}
        poisons: dict[int, str | None] = {}
        lines: list[str] = []
        for node in topological_order(roots + targets):
            operands = [emitted[id(child)] for child in node.inputs]
            given = [poisons[id(child)] for child in node.inputs]
            emitted[id(node)], poisons[id(node)] = self.node(node, operands, given, lines)
        poison = self.table.merge_poison([poisons[id(root)] for root in roots + targets], lines)
        if poison is not None:
            zeros = self.return_text([literal(0, t, self.dialect) for t in self.types])
            lines.append(f"if ({poison} != 0) {{ {self.dialect.poison_variable} = {poison}; {zeros} }}")
        # A store assigns several targets at once: what it reads of them is copied before the first one changes.
        held = []
        for root in roots:
            name = emitted[id(root)][0]
            if root.op in ("local", "element") and len(roots) > 1:
                name = self.table.declare(lines, root.type, name)
            held.append(name)
        return lines, held, [emitted[id(target)][0] for target in targets]

    def node(
        self, node: Node, operands: list[tuple[str, ...]], poisons: list[str | None], lines: list[str]
    ) -> tuple[tuple[str, ...], str | None]:
        """Append the computation of a node to `lines`; return the variables of its components, and of its poison.

        `operands` are the variables of the components of each input, `poisons` the variables of their poison.
        """
        if node.op == "local":
            return (self.locals[node.attribute],), None
        if node.op == "scalar":
            return (literal(node.attribute.number, node.type, self.dialect),), None
        if isinstance(node.attribute, Component):
            return (operands[0][node.attribute.index],), poisons[0]
        names = [operand[0] for operand in operands]
        if node.op == "element":
            return self.element(node, names[0], poisons, lines)
        if isinstance(node.attribute, UserCall):
            # A callee with loops alone gets this function's parameter: a stopped loop poisons the whole function. One
            # with checks gets a variable: a failed check poisons only the values that depend on the call.
            called, argument = node.attribute.function, "poison"
            if called.has_checks:
                poisons = [*poisons, self.table.declare(lines, "int", "0", "poison", constant=False)]
                argument = f"{self.dialect.poison_address}{poisons[-1]}"
            results = self.table.call_function(called, names, argument, lines)
            return results, self.table.merge_poison(poisons, lines)
        text = operation_text(self.dialect, node.attribute, node.inputs[-1].type, node.type, names)
        name = self.table.declare(lines, node.type, text)
        return (name,), self.table.propagate_poison(node.attribute, poisons, names, lines)

    def element(
        self, node: Node, index: str, poisons: list[str | None], lines: list[str]
    ) -> tuple[tuple[str, ...], str | None]:
        """The element of a local array at an index, and the poison of the index."""
        array, (position,) = node.attribute, node.inputs
        if not (position.is_constant and 0 <= position.attribute.number < array.size):
            poisons = list(poisons)
            index = self.table.checked_index(index, str(array.size), node, lines, poisons)
        return (f"{self.arrays[array]}[{index}]",), self.table.merge_poison(poisons, lines)
