"""The buffers that hold the state of a picture's rays on a device, as shaders/raytracing/raytrace.cu reads them."""

from renderer.gpu.device import Buffer, Device

GROUP_SIZE = 128  # threads; four stencil words
MAX_DEPTHS = 16  # of a path; the same in raytrace.cu
WORDS_PER_WARP = 4  # stencil words that each warp of a wavefront stage handles in turn
WORDS_PER_GROUP = GROUP_SIZE // 2  # of the kernel `bounces`


class RayBuffers:
    """The film of a tile of `size` (width, height) pixels, and the ray state that a schedule keeps in memory.

    `float4s_per_hit` is 2 for scenes with instances; `float4s_per_contribution` is 2 where shadow rays start elsewhere
    than paths go on (equiangular.h). All float4 buffers are (count, 4) float32.
    """

    def __init__(
        self,
        device: Device,
        size: tuple[int, int],
        max_depth: int,
        stencil: str,
        schedule: str,
        float4s_per_hit: int = 1,
        keeps_variance: bool = False,
        float4s_per_contribution: int = 1,
    ):
        width, height = size
        self.stencil = stencil
        blocks = -(-width // 8) * -(-height // 4)
        self.padded_count = -(-blocks // WORDS_PER_GROUP) * WORDS_PER_GROUP * 32
        self.launch_threads = self.padded_count // WORDS_PER_WARP
        self.group_threads = self.padded_count // 32 // WORDS_PER_GROUP * GROUP_SIZE
        self.film = tuple(device.buffer((height, width, 4)) for _ in range(1 + keeps_variance))  # FILM_PARAMS
        self.film_m2 = self.film[1] if keeps_variance else None
        self.counts = device.buffer(1 + MAX_DEPTHS, "u4")  # of the regenerate schedule
        self.sample = device.buffer(2, "i4")  # index, and the first of its range
        words = {"flags": self.padded_count, "compact": 1 + self.padded_count} if schedule == "wavefront" else {}
        self.mask_words = words.get(stencil, self.padded_count // 32)
        self.active_masks: list[Buffer] = []  # by depth; the megakernel's lie in one buffer (words, MAX_DEPTHS)
        if schedule == "megakernel":
            self.active_masks = [device.buffer((self.mask_words, MAX_DEPTHS), "u4").fill(0)]
        if schedule == "wavefront":
            self.active_masks = [device.buffer(self.mask_words, "u4") for _ in range(max_depth + 1)]
            self.later_masks = device.buffer((max_depth + 1, self.mask_words), "u4")  # of `bounces`, by depth
            self.hit_mask, self.shadow_mask = device.buffer(self.mask_words, "u4"), device.buffer(self.mask_words, "u4")
            sizes = [self.padded_count] * 5 + [self.padded_count * float4s_per_contribution]
            float4s = [device.buffer((count, 4)).fill(0) for count in sizes]
            self.path = self.origins, self.directions, self.throughputs, self.radiances = float4s[:4]
            self.shadow_rays = float4s[4:]  # directions and contributions
            self.shadows_have_origins = float4s_per_contribution > 1
            self.hits = device.buffer((self.padded_count * float4s_per_hit, 4)).fill(0)
