"""Better trees for still scenes, by moving subtrees to where they cost less, on the device (bvh/reinsertion.cu)."""

GROUP = 128
ROUNDS = 12
DEEPEST = 62  # levels that a walk's stack holds, less two


class Improved:
    """A binary tree on a device, made from another one with one primitive a leaf: nodes (n, 16), primitives (m, 12).

    The other one's `nodes` (m - 1, 16), which hold lowest and highest corners, right ones at the leaves, are used up.
    A tree of more than DEEPEST levels must not be walked.
    """

    layout = "binary"
    entries = "closest", "occluded"

    def __init__(self, device, nodes, primitives, count: int, rounds: int = ROUNDS):
        assert count >= 2, "a tree of fewer than two primitives cannot be improved"
        self.device, self.count = device, count
        work = Reinsertion(device, nodes, count)
        work.refit()
        for _ in range(rounds):
            work.round()
        work.refit()
        self.primitives, self.depth, kept = work.lay_primitives(primitives)
        self.nodes, self.cost = work.lay_nodes(kept)
        centre = device.kernel("bvh/build_hploc.cu", "centre_nodes", group_size=GROUP, STRICT=1)
        centre(kept, self.nodes, kept)


class Reinsertion:
    """The work on a tree: `round` moves as many subtrees as do not disturb each other."""

    def __init__(self, device, nodes, count: int):
        self.device, self.nodes, self.count = device, nodes, count
        self.inner, self.slots = count - 1, 2 * (count - 1)
        names = "link_nodes", "find_moves", "make_moves", "apply_moves", "refit", "lay_primitives", "lay_nodes"
        self.kernels = {name: device.kernel("bvh/reinsertion.cu", name, group_size=GROUP, STRICT=1) for name in names}
        self.up, self._arrivals, self._largest, self._lowest = (device.buffer(self.inner, "u4") for _ in range(4))
        self.moves, self._changes = (device.buffer((self.slots, 2), "u4") for _ in range(2))
        self.gains, self._weights = device.buffer(self.slots), device.buffer((self.inner, 4))
        self.kernels["link_nodes"](self.inner, nodes, self.inner, self.up)

    def find(self) -> None:
        """For every slot the best other place into moves (slots, 2), target and common ancestor, and gains (slots,)."""
        self.kernels["find_moves"](self.slots, self.nodes, self.slots, self.up, self.moves, self.gains)

    def round(self) -> None:
        self.find()
        self._largest.fill(0)
        self._lowest.fill(255)
        for step in range(3):
            self.kernels["make_moves"](
                self.slots,
                self.slots,
                self.up,
                self.moves,
                self.gains,
                step,
                self._largest,
                self._lowest,
                self._changes,
            )
        self.kernels["apply_moves"](self.slots, self.nodes, self.slots, self.up, self._changes)
        self.refit()

    def refit(self) -> None:
        self._arrivals.fill(0)
        self.kernels["refit"](self.slots, self.nodes, self.inner, self.up, self._arrivals, self._weights)

    def lay_primitives(self, primitives):
        """The primitives (count, 12) in the order of leaves, the tree's depth, and how many nodes stay."""
        laid, told = self.device.buffer((self.count, 12)), self.device.buffer(2, "u4").fill(0)
        self.kernels["lay_primitives"](
            self.slots, self.nodes, self.inner, self._weights, self.up, primitives, laid, told
        )
        return laid, *(int(n) for n in told.read())

    def lay_nodes(self, kept: int):
        """The nodes (kept, 16) depth first, and what the tree costs by the SAH."""
        laid, cost = self.device.buffer((kept, 16)), self.device.buffer(2).fill(0)
        threads = min(self.inner, 1 << 16)
        self.kernels["lay_nodes"](threads, self.nodes, self.inner, self._weights, self.up, laid, cost)
        areas, root = (float(area) for area in cost.read())
        return laid, areas / max(root, 1e-30) + 1
