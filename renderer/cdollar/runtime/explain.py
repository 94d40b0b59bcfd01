"""--explain: the DAG, the parts, why each split happened, the generated text, what the caches did."""

from __future__ import annotations

from renderer.cdollar.ir.dag import (
    Access,
    ArraySource,
    BoundVariable,
    Component,
    Constant,
    Node,
    RuntimeScalar,
    UserCall,
    topological_order,
)
from renderer.cdollar.ir.types import FunctionType
from renderer.cdollar.targets.device_target import kernel_key


def graph(root: Node) -> list[str]:
    """One line a node, inputs before their users."""
    names: dict[int, str] = {}
    lines = []
    for node in topological_order([root]):
        names[id(node)] = f"%{len(names)}"
        type_ = node.type if not isinstance(node.type, tuple) else f"({', '.join(node.type)})"
        inputs = " ".join(names[id(child)] for child in node.inputs)
        lines.append(f"{names[id(node)]:>5} {node.op} {shown(node)}{' ' + inputs if inputs else ''} : {type_}")
    return lines


def shown(node: Node) -> str:
    value = node.attribute
    if isinstance(value, Constant):
        return str(value.number)
    if isinstance(value, RuntimeScalar):
        return f"{value.name} = {value.number} (argument)"
    if isinstance(value, BoundVariable):
        return f"{value.name} : {value.range}"
    if isinstance(value, ArraySource):
        return f"{value.name} [{' x '.join(map(str, value.ranges))}]"
    if isinstance(value, Access):
        return "at" + (f" {value.borders}" if any(value.borders) else "")
    if isinstance(value, Component):
        return f"component {value.index}"
    if isinstance(value, UserCall):
        return f"call {value.function.name}"
    if node.op == "reduce":
        return f"`{value[0].name}` over " + ", ".join(f"{v.name} : {v.range}" for v in value[1])
    if node.op == "function" and isinstance(node.type, FunctionType):
        return "of " + ", ".join(f"{v.name} : {v.range}" for v in value)
    return "" if value is None else str(value)


def explained(compilation, root: Node, target) -> str:
    """The whole explanation of a run that has been done with `target.explained` as a list."""
    lines = ["domains", *(f"  {text}" for text in compilation.program.inference.log or ["  (nothing to infer)"])]
    entries = getattr(target, "explained", None)
    if not entries:
        return "\n".join([*lines, "graph", *(f"  {text}" for text in graph(root))])
    seen = set()
    for kind, node, what in entries:
        if kind == "passes":
            lines += ["graph after the passes", *(f"  {text}" for text in graph(node))]
            lines += ["splits", *(f"  {text}" for text in what or ["none"])]
            continue
        if what.text in seen:
            lines.append(f"part {kernel_key(what)}: as above")
            continue
        seen.add(what.text)
        reason = f" ({what.why})" if what.why else ""
        lines += [
            f"part {kernel_key(what)}: {what.kind}{reason}, {what.groups} groups of {what.group}",
            what.text.rstrip(),
        ]
    counters = target.counters
    lines.append(
        f"kernels: {counters.launches} launches, {counters.built} built in {counters.seconds * 1000:.1f} ms, "
        f"{counters.found} found in memory"
    )
    return "\n".join(lines)
