"""Device buffers of the ray tracer: the film, and the path state that a schedule's kernels pass to each other.

schedules.py passes them to the kernels of shaders/raytracing/raytrace.cu. A stencil is the mask of active rays after a
kernel; a stencil word has a bit for each ray of a block of 8 x 4 pixels, unless the setting `stencil` says otherwise.
"""

from renderer.gpu.device import Buffer, Device

GROUP_SIZE = 128  # threads of a group; each has one ray of the group's four stencil words
MAX_DEPTHS = 16  # depths whose active rays are counted for the report; the same in raytrace.cu
WORDS_PER_WARP = 4  # stencil words that each warp of a wavefront stage handles in turn
WORDS_PER_GROUP = GROUP_SIZE // 2  # stencil words of a group of the kernel `bounces`
BLOCK = 8, 4  # width and height in pixels of the block whose 32 rays share a stencil word
WORD_RAYS = 32


def block_counts(size: tuple[int, int]) -> tuple[int, int]:
    """Returns the columns and rows of blocks that cover a picture or tile of `size` (width, height)."""
    return -(-size[0] // BLOCK[0]), -(-size[1] // BLOCK[1])


def padded_rays(size: tuple[int, int]) -> int:
    """Returns the rays of a picture or tile of `size`: 32 a block, padded to whole groups of the kernel `bounces`."""
    columns, rows = block_counts(size)
    return -(-columns * rows // WORDS_PER_GROUP) * WORDS_PER_GROUP * WORD_RAYS


class RayBuffers:
    """The film of a tile of `size` (width, height) pixels, and the path state that a schedule needs.

    `float4s_per_hit` is 2 for scenes with instances. `float4s_per_contribution` is 2 if shadow rays may start elsewhere
    than at the path's vertex (equiangular.h). All float4 buffers are (count, 4) float32. The film is the mean and, if
    `keeps_variance`, the sum of squared deviations, each (height, width, 4). `film_of` are buffers of another schedule
    for the same picture, whose film these share.

    There are `padded_count` rays, see padded_rays(). `launch_threads` are the threads of a stage, `bounces_threads` of
    the kernel `bounces`.
    """

    film: tuple[Buffer, ...]
    sample: Buffer

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
        film_of: "RayBuffers | None" = None,
    ):
        # The arguments after the device: buffers may be used again for a picture with an equal key.
        self.key = (
            size, max_depth, stencil, schedule, float4s_per_hit, keeps_variance, float4s_per_contribution
        )  # fmt: skip
        width, height = size
        self.stencil = stencil
        self.padded_count = padded_rays(size)
        self.launch_threads = self.padded_count // WORDS_PER_WARP
        self.bounces_threads = self.padded_count // WORD_RAYS // WORDS_PER_GROUP * GROUP_SIZE
        film = film_of.film if film_of else tuple(device.buffer((height, width, 4)) for _ in range(1 + keeps_variance))
        self.film = film  # FILM_PARAMS
        self.film_m2 = self.film[1] if keeps_variance else None
        self.counts = device.buffer(1 + MAX_DEPTHS, "u4")  # `regenerate`: paths started, then active rays by depth
        # index of the current sample, and of the first sample of its range (film.py)
        self.sample = film_of.sample if film_of else device.buffer(2, "i4")
        words = {"flags": self.padded_count, "compact": 1 + self.padded_count} if schedule == "wavefront" else {}
        self.mask_words = words.get(stencil, self.padded_count // WORD_RAYS)
        self.active_masks: list[Buffer] = []  # one for each depth; for the megakernel one buffer (words, MAX_DEPTHS)
        if schedule == "megakernel":
            self.active_masks = [device.buffer((self.mask_words, MAX_DEPTHS), "u4").fill(0)]
        if schedule == "wavefront":
            self.active_masks = [device.buffer(self.mask_words, "u4") for _ in range(max_depth + 1)]
            self.bounces_masks = device.buffer((max_depth + 1, self.mask_words), "u4")  # masks by depth, for `bounces`
            self.hit_mask, self.shadow_mask = device.buffer(self.mask_words, "u4"), device.buffer(self.mask_words, "u4")
            # float4s of a ray in each buffer: origins, directions, throughputs, radiances, hits, then the shadow rays'
            # directions and contributions.
            counts = [1, 1, 1, 1, float4s_per_hit, 1, float4s_per_contribution]
            self.state = tuple(device.buffer((self.padded_count * count, 4)).fill(0) for count in counts)
            self.origins, self.directions, _, self.radiances, self.hits, *self.shadow_rays = self.state
            self.shadows_have_origins = float4s_per_contribution > 1
