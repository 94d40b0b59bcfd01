"""Scalar functions of a program, with their loops and branches, as functions of a kernel or shader."""

from __future__ import annotations

from renderer.cdollar.ir.dag import Component, Node, UserCall, topological_order
from renderer.cdollar.ir.device_function import (
    BranchOp,
    DeviceFunction,
    JumpOp,
    LoopOp,
    ReturnOp,
    StoreOp,
)
from renderer.cdollar.ir.types import component_types
from renderer.cdollar.targets.dialects import literal, operation_text

MAX_DEVICE_ITERATIONS = 1 << 24  # rounds of one loop of a scalar function before it is taken for endless
LOOP_LIMIT_STATUS = 1 << 30  # the value of `bad` that says so


def precise(writer, part: str) -> str:
    strict = writer.dialect.name == "pass" and writer.dialect.strict
    return "precise " if strict and part == "float" else ""


class DeviceFunctionEmitter:
    """A scalar function as a function of the dialect; `writer` prints the text that calls it."""

    def __init__(self, writer, function: DeviceFunction):
        self.writer, self.function, self.dialect = writer, function, writer.dialect
        self.lines: list[str] = []
        self.names = {
            slot: f"l{k}_{slot.name}".replace("__", "_")
            for k, slot in enumerate((*function.parameters, *function.locals))
        }

    def text(self) -> str:
        parts = component_types(self.function.result_type)
        self.writer.doubles |= "double" in parts or any(s.type == "double" for s in self.names)
        parameters = [f"{self.dialect.types[s.type]} {self.names[s]}" for s in self.function.parameters]
        if has_loops(self.function):
            parameters.append(self.dialect.bad_parameter())
        for slot in self.function.locals:
            type_ = precise(self.writer, slot.type) + self.dialect.types[slot.type]
            self.lines.append(f"    {type_} {self.names[slot]} = {literal(0, slot.type, self.dialect)};")
        self.statements(self.function.body, "    ")
        zero = [literal(0, p, self.dialect) for p in parts]
        self.lines.append("    " + self.give(zero, parts))
        single = len(parts) == 1
        result = self.dialect.types[parts[0]] if single else "R@NAME@"
        struct = "" if single else self.dialect.struct("R@NAME@", parts) + "\n"
        return f"{struct}DEVICE {result} @NAME@({', '.join(parameters)}) {{\n" + "\n".join(self.lines) + "\n}\n"

    def give(self, names: list[str], parts: tuple[str, ...]) -> str:
        if len(parts) == 1:
            return f"return {names[0]};"
        if self.dialect.name == "pass":
            return f"return R@NAME@({', '.join(names)});"
        stores = " ".join(f"found.c{k} = {n};" for k, n in enumerate(names))
        return f"{{ R@NAME@ found; {stores} return found; }}"

    def statements(self, body: tuple, indent: str) -> None:
        for statement in body:
            if isinstance(statement, StoreOp):
                self.store(statement, indent)
            elif isinstance(statement, BranchOp):
                self.branch(statement, indent)
            elif isinstance(statement, LoopOp):
                self.repeat(statement, indent)
            elif isinstance(statement, JumpOp):
                self.lines.append(f"{indent}{statement.kind};")
            elif isinstance(statement, ReturnOp):
                self.lines.append(f"{indent}{{")
                names = self.values(statement.nodes, indent + "    ")
                self.lines.append(indent + "    " + self.give(names, component_types(self.function.result_type)))
                self.lines.append(f"{indent}}}")

    def store(self, statement: StoreOp, indent: str) -> None:
        self.lines.append(f"{indent}{{")
        names = self.values(statement.nodes, indent + "    ")
        for slot, name in zip(statement.locals, names, strict=True):
            self.lines.append(f"{indent}    {self.names[slot]} = {name};")
        self.lines.append(f"{indent}}}")

    def branch(self, statement: BranchOp, indent: str) -> None:
        test = self.writer.fresh("t")
        self.lines.append(f"{indent}bool {test};")
        self.lines.append(f"{indent}{{")
        name = self.values((statement.condition,), indent + "    ")[0]
        self.lines.append(f"{indent}    {test} = {name};")
        self.lines.append(f"{indent}}}")
        self.lines.append(f"{indent}if ({test}) {{")
        self.statements(statement.if_true, indent + "    ")
        if statement.if_false:
            self.lines.append(f"{indent}}} else {{")
            self.statements(statement.if_false, indent + "    ")
        self.lines.append(f"{indent}}}")

    def repeat(self, statement: LoopOp, indent: str) -> None:
        """`continue` goes to the top, where the step stands before the test: the same text in C and GLSL."""
        count, inner = self.writer.fresh("round"), indent + "    "
        self.lines.append(f"{indent}for (int {count} = 0; ; {count}++) {{")
        self.lines.append(
            f"{inner}if ({count} == {MAX_DEVICE_ITERATIONS}) {{ {self.dialect.set_bad(LOOP_LIMIT_STATUS)} break; }}"
        )
        if statement.step:
            self.lines.append(f"{inner}if ({count} != 0) {{")
            self.statements(statement.step, inner + "    ")
            self.lines.append(f"{inner}}}")
        if statement.condition is not None:
            self.lines.append(f"{inner}{{")
            name = self.values((statement.condition,), inner + "    ")[0]
            test = f"!{name}" if statement.test_first else f"{count} != 0 && !{name}"
            self.lines.append(f"{inner}    if ({test}) break;")
            self.lines.append(f"{inner}}}")
        self.statements(statement.body, inner)
        self.lines.append(f"{indent}}}")

    def values(self, roots: tuple[Node, ...], indent: str) -> list[str]:
        found: dict[int, tuple[str, ...]] = {}
        for node in topological_order(roots):
            found[id(node)] = self.node(node, [found[id(child)] for child in node.inputs], indent)
        # What is stored is copied first: another slot of the same statement may be read after it is written.
        names = []
        for root in roots:
            name = found[id(root)][0]
            if root.op == "local" and len(roots) > 1:
                copy = self.writer.fresh()
                self.lines.append(f"{indent}{self.dialect.declare(root.type, copy, name)}")
                name = copy
            names.append(name)
        return names

    def node(self, node: Node, operands: list[tuple[str, ...]], indent: str) -> tuple[str, ...]:
        if node.op == "local":
            return (self.names[node.attribute],)
        if node.op == "scalar":
            return (literal(node.attribute.number, node.type, self.dialect),)
        if isinstance(node.attribute, Component):
            return (operands[0][node.attribute.index],)
        names = [o[0] for o in operands]
        if isinstance(node.attribute, UserCall):
            return self.inner_call(node, names, indent)
        variable = self.writer.fresh()
        text = operation_text(self.dialect, node.attribute, node.inputs[-1].type, node.type, names)
        self.lines.append(f"{indent}{self.dialect.declare(node.type, variable, text)}")
        return (variable,)

    def inner_call(self, node: Node, names: list[str], indent: str) -> tuple[str, ...]:
        called = self.writer.function(node.attribute.function)
        if has_loops(node.attribute.function):
            names = [*names, "bad"]
        text = f"{called}({', '.join(names)})"
        if not isinstance(node.type, tuple):
            variable = self.writer.fresh()
            self.lines.append(f"{indent}{self.dialect.declare(node.type, variable, text)}")
            return (variable,)
        whole = self.writer.fresh("r")
        self.lines.append(f"{indent}R{called} {whole} = {text};")
        return tuple(f"{whole}.c{k}" for k in range(len(node.type)))


def has_loops(function: DeviceFunction) -> bool:
    """Whether a function or one that it calls may run without end."""
    stack = list(function.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, LoopOp):
            return True
        nodes: tuple = ()
        if isinstance(statement, BranchOp):
            stack += [*statement.if_true, *statement.if_false]
            nodes = (statement.condition,)
        elif isinstance(statement, (StoreOp, ReturnOp)):
            nodes = statement.nodes
        for node in topological_order(nodes):
            if isinstance(node.attribute, UserCall) and has_loops(node.attribute.function):
                return True
    return False
