"""Which walk of shaders/bvh_rays.cu a set of rays takes through a tree: a table of what was fastest on a device."""

from functools import cache

import numpy as np

from renderer import bvh_processor
from renderer.bvh import Wide
from renderer.bvh_processor import Branches
from renderer.bvh_quad import MOST_KEPT, Quads

FETCHING_THREADS = 1 << 18
# Trees differ in what they cost by the SAH, which is about how many nodes a ray meets that nothing stops: objects of
# triangles cost 20 to 50, a Menger sponge of level 4 195, 100,000 long hairs 2,000. In the sponge rays are
# stopped after a twentieth of that; in hair they are not, so that rays of one warp part and wait for each other.
COSTLY = 100
STOPPED = 0.25  # of a tree's cost: the nodes that a ray meets where surfaces stop it soon
LARGE = 100_000  # nodes: those of a cheap tree come from far away, and four-wide ones pay
PROBES = 4096
# By class of rays and tree: the walk and its threads a group, where warps vote, from tests/fps/results/h200_rays.jsonl
# and nvidia_h200_rays.jsonl. Hair was timed with "closest" alone (0.83 of a plain walk); the rows of "tangled" are by
# counting: nodes and primitives that a warp takes one after the other for primary rays are 841 with "closest",
# 599 with a plain walk, 273 with packets, and for scattered ones 27,300, 20,000 and 9,700 with fetching.
WALKS = {
    "primary": {
        "cheap": ("closest_packet", 128),
        "large": ("closest_packet", 128),
        "stopped": ("closest", 64),
        "tangled": ("closest_packet", 128),
    },
    "scattered": {
        "cheap": ("closest_fetching", 64),
        "large": ("closest_quads", 64),
        "stopped": ("closest", 64),
        "tangled": ("closest_fetching", 64),
    },
    "primary shadow": {
        "cheap": ("occluded_packet", 128),
        "large": ("occluded_packet", 128),
        "stopped": ("occluded", 64),
        "tangled": ("occluded_packet", 128),
    },
    "scattered shadow": {
        "cheap": ("occluded_fetching", 64),
        "large": ("occluded_quads", 64),
        "stopped": ("occluded_fetching", 64),
        "tangled": ("occluded_fetching", 64),
    },
}


@cache
def has_votes(device) -> bool:
    """Whether the warps of a device vote, so that the walks of bvh_warps.h are there."""
    answer = device.buffer(1, "u4")
    device.kernel("bvh_rays.cu", "votes_here", group=64, STRICT=1, SPHERES=0)(1, answer)
    return bool(answer.read()[0])


def kind_of(tree) -> str:
    """The column of WALKS of a binary tree on a device."""
    if tree.cost <= COSTLY:
        return "large" if tree.nodes.shape[0] > LARGE else "cheap"
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
    kernel = tree.device.kernel("bvh_rays.cu", "count_steps", group=64, STRICT=1, SPHERES=1)
    kernel(PROBES, tree.device.buffer(ways.shape).write(ways), tree.nodes, tree.primitives, PROBES, total)
    return float(total.read()[0]) / PROBES


def constants_of(tree) -> dict[str, int]:
    """What the stages of raytrace.cu, whose threads go on with their own rays, take from the table.

    TOGETHER: whether rays that begin alike walk as packets. WALK_STEPS: after how many nodes a thread that has reached
    a leaf gets its turn, 0 for when all have. In hair 3 save a third of a warp's steps, by counting.
    """
    if isinstance(tree, Wide | Branches) or not has_votes(tree.device):
        return {"TOGETHER": 0, "WALK_STEPS": 0}
    kind = kind_of(tree)
    return {"TOGETHER": int(WALKS["primary"][kind][0] == "closest_packet"), "WALK_STEPS": 3 if kind == "tangled" else 0}


class Walk:
    """The fastest walk of a tree for rays of a class: "primary", "scattered", and each with " shadow" for any hit."""

    def __init__(self, tree, rays_class: str, spheres: bool = False):
        if isinstance(tree, Branches):
            self.entry, group = bvh_processor.walk_of(rays_class), bvh_processor.GROUP
        elif not isinstance(tree, Wide) and has_votes(tree.device):
            self.entry, group = WALKS[rays_class][kind_of(tree)]
        else:
            self.entry, group = tree.entries[1 if rays_class.endswith("shadow") else 0], 64
        self.tree = tree
        if self.entry.endswith("quads"):
            quads = Quads(tree)
            if quads.kept <= MOST_KEPT:
                self.tree = quads
            else:
                self.entry = self.entry.replace("quads", "fetching")
        self.next = tree.device.buffer(1, "u4")
        self._kernel = tree.device.kernel("bvh_rays.cu", self.entry, group=group, STRICT=1, SPHERES=int(spheres))

    def __call__(self, rays, hits, count: int) -> None:
        """Launches it: rays (n, 2, 4) to hits (n, 4) float32, or to (n,) uint32 for shadows."""
        arguments = rays, hits, self.tree.nodes, self.tree.primitives, count
        if self.entry.endswith(("fetching", "quads")):
            self.next.fill(0)
            self._kernel(min(count, FETCHING_THREADS), *arguments, self.next)
        else:
            beams = self.entry.endswith("beam")  # a thread each
            self._kernel(-(-count // bvh_processor.BEAM) if beams else count, *arguments)
