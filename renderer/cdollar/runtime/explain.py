"""--explain: inferred domains, the DAG, why it was split, the kernels' text, launches and cache hits."""

from __future__ import annotations

from renderer.cdollar.checker.compilation import Compilation
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.types import FunctionType


def graph(root: ir.Node) -> list[str]:
    """One line per node, inputs before their users."""
    names: dict[int, str] = {}
    lines = []
    for node in ir.topological_order([root]):
        names[id(node)] = f"%{len(names)}"
        type_ = node.type if not isinstance(node.type, tuple) else f"({', '.join(node.type)})"
        inputs = " ".join(names[id(child)] for child in node.inputs)
        lines.append(f"{names[id(node)]:>5} {node.op} {label(node)}{' ' + inputs if inputs else ''} : {type_}")
    return lines


def label(node: ir.Node) -> str:
    """The attribute of a node for a reader."""
    attribute = node.attribute
    if isinstance(attribute, ir.Constant):
        return str(attribute.number)
    if isinstance(attribute, ir.RuntimeScalar):
        return f"{attribute.name} = {attribute.number} (argument)"
    if isinstance(attribute, ir.BoundVariable):
        return f"{attribute.name} : {attribute.range}"
    if isinstance(attribute, ir.ArraySource):
        return f"{attribute.name} [{' x '.join(map(str, attribute.ranges))}]"
    if isinstance(attribute, ir.Access):
        return "at" + (f" {attribute.borders}" if any(attribute.borders) else "")
    if isinstance(attribute, ir.Component):
        return f"component {attribute.index}"
    if isinstance(attribute, ir.UserCall):
        return f"call {attribute.function.name}"
    if node.op == "reduce":
        return f"`{attribute[0].name}` over " + ", ".join(f"{v.name} : {v.range}" for v in attribute[1])
    if node.op == "function" and isinstance(node.type, FunctionType):
        return "of " + ", ".join(f"{v.name} : {v.range}" for v in attribute)
    return "" if attribute is None else str(attribute)


def section(title: str, lines: list[str]) -> list[str]:
    """Lines under a title."""
    return [title, *(f"  {line}" for line in lines)]


def explain(compilation: Compilation, root: ir.Node) -> str:
    """The explanation of a run whose target has a trace."""
    target = compilation.target
    lines = section("domains", compilation.program.inference.log or ["(nothing to infer)"])
    if not target.trace:
        return "\n".join(lines + section("graph", graph(root)))
    seen = set()
    for kind, node, entry in target.trace:
        if kind == "passes":
            lines += section("graph after the passes", graph(node)) + section("splits", entry or ["none"])
        elif entry.text in seen:
            lines.append(f"kernel {entry.key}: as above")
        else:
            seen.add(entry.text)
            reason = f" ({entry.reason})" if entry.reason else ""
            groups = f"{entry.group_count} groups of {entry.group_size}"
            lines += [f"kernel {entry.key}: {entry.kind}{reason}, {groups}", entry.text.rstrip()]
    counters = target.counters
    lines.append(
        f"kernels: {counters.launches} launches, {counters.compiled} compiled in "
        f"{counters.compile_seconds * 1000:.1f} ms, {counters.cache_hits} cache hits"
    )
    return "\n".join(lines)
