"""The text of `rayfold run --explain`: domains, the DAG, why it was split, kernels, costs, launches, cache hits.

explain() takes the compilation after its run and returns sections of lines; all of it was recorded during the run.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.passes import format_ranges
from renderer.cdollar.lowering.compilation import Compilation
from renderer.cdollar.runtime.costs import Ceilings, kernel_costs, table
from renderer.paths import SHADERS


def graph(roots: Sequence[ir.Node]) -> list[str]:
    """One line per node, inputs before their users."""
    names: dict[int, str] = {}
    lines = []
    for node in ir.topological_order(roots):
        names[id(node)] = f"%{len(names)}"
        inputs = "".join(f" {names[id(child)]}" for child in node.inputs)
        lines.append(f"{names[id(node)]:>5} {node.op} {label(node)}{inputs} : {type_text(node)}")
    return lines


def type_text(node: ir.Node) -> str:
    """The text of a node's type."""
    return f"({', '.join(node.type)})" if isinstance(node.type, tuple) else str(node.type)


# The text of a node's attribute, by the class of the attribute.
LABELS: dict[type, Callable[[Any], str]] = {
    ir.Constant: lambda a: str(a.number),
    ir.RuntimeScalar: lambda a: f"{a.name} = {a.number} (argument)",
    ir.BoundVariable: lambda a: f"{a.name} : {a.range}",
    ir.ArraySource: lambda a: f"{a.name} [{' x '.join(map(str, a.ranges))}]",
    ir.Access: lambda a: "at" + (f" {a.borders}" if any(a.borders) else ""),
    ir.Component: lambda a: f"component {a.index}",
    ir.RangeCheck: lambda a: f"check of the range of {a.variable.name}",
    ir.UserCall: lambda a: f"call {a.function.name}",
    type(None): lambda a: "",
}


def label(node: ir.Node) -> str:
    """The text of a node's attribute."""
    if node.op == "reduce":
        return f"`{node.attribute[0].name}` over {format_ranges(node.attribute[1])}"
    if isinstance(node.attribute, tuple):
        return f"of {format_ranges(node.attribute)}"
    return LABELS.get(type(node.attribute), str)(node.attribute)


def section(title: str, lines: list[str]) -> list[str]:
    """Lines under a title."""
    return [title, *(f"  {line}" for line in lines)]


def counted(lines: Sequence[str]) -> list[str]:
    """Each line once, with how often it occurs: a loop of the host repeats what it builds."""
    return [line if count == 1 else f"{line} ({count} times)" for line, count in Counter(lines).items()]


def kernel_text(text: str) -> str:
    """A kernel's text; the body of a matrix product in place of its #include."""

    def included(match: re.Match[str]) -> str:
        return (SHADERS / match[1]).read_text(encoding="utf-8").rstrip()

    return re.sub(r'^\s*#include "(cdollar/\w+_matmul\.h)"$', included, text, flags=re.MULTILINE).rstrip()


def explain(compilation: Compilation, roots: Sequence[ir.Node], ceilings: Ceilings | None = None) -> str:
    """The text for a run; kernels are explained if its target has a trace."""
    target = compilation.target
    lines = [f"target: {target.name}, {target.device_name}"]
    lines += section("domains", counted(compilation.program.inference.log) or ["(nothing to infer)"])
    spans = compilation.dag.spans
    reduced = [n for n in ir.topological_order(roots) if n.op == "reduce" and n in spans]
    ranges = [f"{spans[n].provenance} runs over {format_ranges(n.attribute[1])}" for n in reduced]
    lines += section("reductions", counted(ranges))
    if not target.trace:
        lines += section("graph", graph(roots))
        return "\n".join([*lines, "kernels: none, NumPy evaluates the graph; --target opencl, cuda or glsl have them"])
    seen = set()
    # ("passes", root, remarks), ("primitive", node, launches) or ("kernel", node, plan): see GraphTarget.
    for kind, node, entry in target.trace:
        if kind == "passes":
            lines += section("graph after the passes", graph([node])) + section("splits", entry or ["none"])
        elif kind == "primitive":
            lines.append(f"primitive {node.attribute}: {entry} launches, see targets/primitive_kernels.py")
        elif entry.text in seen:
            lines.append(f"kernel {entry.key}: as above")
        else:
            seen.add(entry.text)
            reason = f" ({entry.reason})" if entry.reason else ""
            groups = f"{entry.group_count} groups of {entry.group_size}"
            lines += [f"kernel {entry.key}: {entry.kind}{reason}, {groups}", kernel_text(entry.text)]
    lines += section("costs", table(kernel_costs(target), ceilings))
    if ceilings is not None:
        lines.append(f"roofline of {target.device_name}: {ceilings}")
    counters = target.counters
    compiled = f"{counters.compiled} compiled in {counters.compile_seconds * 1000:.1f} ms"
    lines.append(f"kernels: {counters.launches} launches, {compiled}, {counters.cache_hits} cache hits")
    return "\n".join(lines)
