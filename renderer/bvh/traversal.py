"""Which walk of bvh/ray_queries.cu a set of rays takes through a tree: a table of what was fastest on a device."""

from dataclasses import dataclass, field

import numpy as np

from renderer.bvh import bvh8
from renderer.bvh.build import Wide
from renderer.bvh.bvh2_quantized import SMALL, has_votes
from renderer.bvh.bvh4 import MOST_KEPT, Quads
from renderer.bvh.bvh8 import Branches

FETCHING_THREADS = 1 << 18
# Trees differ in what they cost by the SAH, which is about how many nodes a ray meets that nothing stops: objects of
# triangles cost 20 to 50, a Menger sponge of level 4 195, 100,000 long hairs 2,000. In the sponge rays are
# stopped after a twentieth of that; in hair they are not, so that rays of one warp part and wait for each other.
COSTLY = 100
STOPPED = 0.25  # of a tree's cost: the nodes that a ray meets where surfaces stop it soon
PROBES = 4096


@dataclass(frozen=True)
class Way:
    """A walk's entry for closest hits, threads a group, and what it is compiled with."""

    entry: str
    group: int = 64
    constants: dict[str, int] = field(default_factory=dict)


PACKET, ALONE = Way("closest_packet", 128), Way("closest")
TURNS = Way("closest", 64, {"WALK_STEPS": 3})
NARROW_ALONE = Way("closest", 128, {"RESIDENT_GROUPS": 10})
NARROW_TURNS = Way("closest", 128, {"WALK_STEPS": 5, "RESIDENT_GROUPS": 10})
FETCHING, NARROW_FETCHING = Way("closest_fetching"), Way("closest_fetching", 64, {"FETCH": 8, "STEPS": 6})
QUADS = Way("closest_quads")
# By layout, class of rays and kind of tree, where warps vote; from tests/fps/results/h200_walks.jsonl and
# nvidia_h200_rays.jsonl. Against a plain walk on an H200, for the teapot, the bunny, a sponge and a sphereflake:
#     primary    NARROW_TURNS 1.25, 1.41, 1.17, 1.39; packets 1.34, 1.38, 0.86, 1.23, and 0.64 on a terrain
#     scattered  NARROW_FETCHING 1.27, 1.46, 1.31, 1.66; FETCHING 1.27, 1.28, 1.13, 1.26; QUADS 1.00, 1.23, 0.92, 1.44;
#                NARROW_ALONE 1.48 on the sponge
# In hair packets 10.4 for primary rays, NARROW_FETCHING 17.4 for scattered ones.
# Binary trees that are not small have boxes that differ too much in size for a grid. Shadow rays go the same ways.
WALKS = {
    "narrow": {
        "primary": {"cheap": NARROW_TURNS, "stopped": NARROW_TURNS, "tangled": PACKET},
        "scattered": {"cheap": NARROW_FETCHING, "stopped": NARROW_ALONE, "tangled": NARROW_FETCHING},
    },
    "binary": {
        "primary": {"small": PACKET, "cheap": TURNS, "stopped": ALONE, "tangled": PACKET},
        "scattered": {"small": FETCHING, "cheap": QUADS, "stopped": ALONE, "tangled": QUADS},
    },
}


def kind_of(tree) -> str:
    """The column of WALKS of a binary or narrow tree on a device."""
    if tree.nodes.shape[0] < SMALL and tree.layout == "binary":
        return "small"
    if tree.cost <= COSTLY:
        return "cheap"
    if not hasattr(tree, "steps"):
        tree.steps = steps_of(tree)
    return "stopped" if tree.steps < STOPPED * tree.cost else "tangled"


def steps_of(tree) -> float:
    """How many nodes a ray meets on the way from one of the tree's primitives in any direction: the mean of PROBES."""
    rng = np.random.default_rng(1)
    ways = np.zeros((PROBES, 4), "f4")
    ways[:, :3] = rng.normal(size=(PROBES, 3))
    ways[:, :3] /= np.linalg.norm(ways[:, :3], axis=1, keepdims=True)
    ways.view("i4")[:, 3] = rng.integers(0, tree.count, PROBES)
    total = tree.device.buffer(1, "u4").fill(0)
    constants = dict(STRICT=1, SPHERES=1, NARROW=int(tree.layout == "narrow"))
    kernel = tree.device.kernel("bvh/ray_queries.cu", "count_steps", group_size=64, **constants)
    kernel(PROBES, tree.device.buffer(ways.shape).write(ways), tree.nodes, tree.primitives, PROBES, total)
    return float(total.read()[0]) / PROBES


def constants_of(tree) -> dict[str, int]:
    """What the stages of raytracing/raytrace.cu, whose threads go on with their own rays, take from the table.

    TOGETHER: whether rays that begin alike walk as packets. WALK_STEPS: after how many nodes a thread that has reached
    a leaf gets its turn, 0 for when all have; 4 is what both classes of rays do well with in h200_walks.jsonl.
    """
    if isinstance(tree, Wide | Branches) or not has_votes(tree.device):
        return {"TOGETHER": 0, "WALK_STEPS": 0}
    kind = kind_of(tree)
    together = WALKS[tree.layout]["primary"][kind] is PACKET
    return {"TOGETHER": int(together), "WALK_STEPS": {"cheap": 4, "tangled": 3}.get(kind, 0)}


class Walk:
    """The fastest walk of a tree for rays of a class: "primary", "scattered", and each with " shadow" for any hit."""

    def __init__(self, tree, rays_class: str, spheres: bool = False):
        shadow = rays_class.endswith(" shadow")
        if isinstance(tree, Branches):
            way = Way(bvh8.walk_of(rays_class), bvh8.GROUP)
        elif isinstance(tree, Wide) or not has_votes(tree.device):
            way = Way(tree.entries[int(shadow)])
        else:
            way = WALKS[tree.layout][rays_class.removesuffix(" shadow")][kind_of(tree)]
        self.tree = tree
        if way is QUADS:
            quads = Quads(tree)
            if quads.kept <= MOST_KEPT:
                self.tree = quads
            else:
                way = FETCHING
        self.entry = way.entry.replace("closest", "occluded") if shadow else way.entry
        self.next = tree.device.buffer(1, "u4")
        constants = dict(STRICT=1, SPHERES=int(spheres), NARROW=int(tree.layout == "narrow"), **way.constants)
        self._kernel = tree.device.kernel("bvh/ray_queries.cu", self.entry, group_size=way.group, **constants)

    def __call__(self, rays, hits, count: int) -> None:
        """Launches it: rays (n, 2, 4) to hits (n, 4) float32, or to (n,) uint32 for shadows."""
        arguments = rays, hits, self.tree.nodes, self.tree.primitives, count
        if self.entry.endswith(("fetching", "quads")):
            self.next.fill(0)
            self._kernel(min(count, FETCHING_THREADS), *arguments, self.next)
        else:
            beams = self.entry.endswith("beam")  # a thread each
            self._kernel(-(-count // bvh8.BEAM) if beams else count, *arguments)
