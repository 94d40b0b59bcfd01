"""How a function or a reduction of a program becomes kernels of common/portable.h: maps here, groups.py, tiles.py.

A part is a function of bound variables (an array is its result) or a reduction to one value. What the text needs from
outside stands in its parameters, so that the same text serves all sizes and all numbers of the program.
"""

from __future__ import annotations

import numpy as np

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import C
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.kernel_plan import (
    ElementwiseEmitter,
    KernelPlan,
    assembled,
    closed_up,
    decode,
    four_bytes,
    header,
    in_lane,
    is_elementwise,
    output_parts,
    quad_loads,
    report,
    storage,
    volume,
)
from renderer.cdollar.targets.matmul_kernels import match_matrix_product, plan_cpu_matmul, plan_tiled_matmul, sized
from renderer.cdollar.targets.reduction_kernels import MIN_REDUCTION_LENGTH, order_matters, plan_reduction
from renderer.cdollar.targets.schedule import DEFAULT, Schedule

MAX_REDUCTION_OUTPUTS = 4096  # outputs below which a long reduction gets a group for each


def plan_map(node: Node, ranges_of, schedule: Schedule, lanes: int) -> KernelPlan:
    """One thread for a few elements of the result."""
    variables = node.attribute
    count = int(np.prod([v.range.size for v in variables], dtype=np.int64))
    linear = is_elementwise(node, variables, node.inputs, ranges_of)
    writer = (ElementwiseEmitter if linear else Emitter)(C(), ranges_of)
    items = schedule.items if lanes > 1 and linear else 1
    writer.blocks[0].variables = frozenset()
    if linear:
        for variable in variables:
            writer.define(variable, "place")
    else:
        decode(writer, variables, "place")
    values = [writer.value(body) for body in node.inputs]
    stores = [f"out{k}[place] = {v.names[0]};" for k, v in enumerate(values)]
    checks = report(writer, writer.one_bad([v.bad for v in values if v.bad], writer.blocks[0]))
    body = writer.blocks[0].lines + stores + checks
    outs = [f"GLOBAL {storage(p)} *RESTRICT out{k}" for k, p in enumerate(output_parts(node))]
    head, arguments = header(writer, "part", ["int count", "GLOBAL int *status", *outs])
    quads = items >= 4 and four_bytes(writer, output_parts(node))
    if quads:
        lines = quad_lines(writer, output_parts(node), body, items // 4)
    elif items > 1:
        lines = [
            f"const int first = (int)(group_index() * (GROUP_SIZE * {items}) + local_index());",
            f"if (first + {items - 1} * GROUP_SIZE < count) {{",
            f"    UNROLL for (int item = 0; item < {items}; item++) {{",
            "        const int place = first + item * GROUP_SIZE;",
            *("        " + line for line in body),
            "    }",
            "} else {",
            "    for (int place = first; place < count; place += GROUP_SIZE) {",
            *("        " + line for line in body),
            "    }",
            "}",
        ]
    else:
        lines = ["const int place = (int)thread_index();", "if (place < count) {", *("    " + x for x in body), "}"]
    outputs = [("out", node, k) for k in range(len(outs))]
    found = KernelPlan(node, "map", assembled(writer, head, lines), schedule.group)
    found.groups = -(-count // (schedule.group * items))
    found.arguments = [np.int32(count), ("status",), *outputs, *arguments]
    return closed_up(found, writer)


def quad_lines(writer: Emitter, outputs: tuple[str, ...], body: list[str], quads: int) -> list[str]:
    """A map whose threads take vectors of four elements, `quads` of them."""
    lanes = [line for lane in "xyzw" for line in in_lane(writer, body, lane, len(outputs))]
    return [
        f"UNROLL for (int item = 0; item < {quads}; item++) {{",
        f"    const int quad = (int)(group_index() * (GROUP_SIZE * {quads}) + local_index()) + item * GROUP_SIZE;",
        "    if (4 * quad + 3 < count) {",
        *("        " + line for line in quad_loads(writer)),
        *(f"        {part}4 out{k}_quad;" for k, part in enumerate(outputs)),
        *("        " + line for line in lanes),
        *(f"        ((GLOBAL {part}4 *)out{k})[quad] = out{k}_quad;" for k, part in enumerate(outputs)),
        "    } else {",
        "        for (int place = 4 * quad; place < count; place++) {",
        *("            " + line for line in body),
        "        }",
        "    }",
        "}",
    ]


def plan_kernel(node: Node, ranges_of, schedule: Schedule, properties) -> KernelPlan:
    """How a function or a closed reduction is computed on a processor."""
    if node.op == "reduce":
        return plan_reduction(node, node, ranges_of, schedule, properties.compute_units, properties.warp_size)
    product = match_matrix_product(node) if not schedule.plain else None
    if product is not None and volume(product.inner) >= 4:
        if properties.scalar_threads:
            return plan_cpu_matmul(product, ranges_of, schedule)
        return plan_tiled_matmul(
            product, ranges_of, sized(schedule, product, properties.compute_units) if schedule == DEFAULT else schedule
        )
    outputs = volume(node.attribute)
    single = node.inputs[0].inputs[0] if node.inputs[0].op == "apply" and len(node.inputs) > 1 else node.inputs[0]
    if single.op == "reduce" and single.free_variables and is_whole(node, single) and not properties.scalar_threads:
        if (
            outputs <= MAX_REDUCTION_OUTPUTS
            and volume(single.attribute[1]) >= MIN_REDUCTION_LENGTH
            and not order_matters(single)
        ):
            return plan_reduction(node, single, ranges_of, schedule, properties.compute_units, properties.warp_size)
    return plan_map(node, ranges_of, schedule, properties.warp_size)


def is_whole(node: Node, reduce_node: Node) -> bool:
    """Whether a function's components are exactly those of one reduction."""
    if len(node.inputs) == 1:
        return node.inputs[0] is reduce_node and not isinstance(reduce_node.type, tuple)
    return (
        isinstance(reduce_node.type, tuple)
        and all(
            body.op == "apply"
            and body.inputs
            and body.inputs[0] is reduce_node
            and getattr(body.attribute, "index", None) == k
            for k, body in enumerate(node.inputs)
        )
        and len(node.inputs) == len(reduce_node.type)
    )
