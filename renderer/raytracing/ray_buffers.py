"""Device buffers of the ray tracer: the film, and the path state that a schedule's kernels pass to each other.

schedules.py passes them to the kernels of shaders/raytracing/raytrace.cu. A stencil is the mask of active rays after a
kernel; a stencil word has a bit for each ray of a block of 8 x 4 pixels, unless the setting `stencil` says otherwise.
"""

from renderer.gpu.device import Buffer, Device
from renderer.raytracing.settings import Settings

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


def buffers_key(settings: Settings, size: tuple[int, int]) -> tuple[object, ...]:
    """Returns what RayBuffers depend on: buffers may be used again for a picture with an equal key."""
    return (
        size, settings.max_depth, settings.stencil, settings.schedule, settings.has_instances or bool(settings.models),
        settings.keeps_variance, settings.samples_segments,
    )  # fmt: skip


class RayBuffers:
    """The film of a tile of `size` (width, height) pixels, and the path state that the settings' schedule needs.

    All float4 buffers are (count, 4) float32. The film is the mean and, if the settings keep the variance, the sum of
    squared deviations, each (height, width, 4). `film_of` are buffers of another schedule for the same picture, whose
    film these share.

    There are `padded_count` rays, see padded_rays(). `launch_threads` are the threads of a stage, `bounces_threads` of
    the kernel `bounces`.
    """

    film: tuple[Buffer, ...]
    sample: Buffer

    def __init__(self, device: Device, settings: Settings, size: tuple[int, int], film_of: "RayBuffers | None" = None):
        self.key, self.stencil = buffers_key(settings, size), settings.stencil
        self.padded_count = padded_rays(size)
        self.launch_threads = self.padded_count // WORDS_PER_WARP
        self.bounces_threads = self.padded_count // WORD_RAYS // WORDS_PER_GROUP * GROUP_SIZE
        shapes = [(size[1], size[0], 4)] * (1 + settings.keeps_variance)
        self.film = film_of.film if film_of else tuple(map(device.buffer, shapes))  # FILM_PARAMS (film/film.h)
        self.film_m2 = self.film[1] if settings.keeps_variance else None
        self.counts = device.buffer(1 + MAX_DEPTHS, "u4")  # `regenerate`: paths started, then active rays by depth
        # index of the current sample, and of the first sample of its range (film.py)
        self.sample = film_of.sample if film_of else device.buffer(2, "i4")
        is_wavefront = settings.schedule == "wavefront"
        # "flags": an int a ray; "compact": the number of active rays, then their indices; otherwise a bit a ray.
        words = {"flags": self.padded_count, "compact": 1 + self.padded_count} if is_wavefront else {}
        self.mask_words = words.get(self.stencil, self.padded_count // WORD_RAYS)
        self.active_masks: list[Buffer] = []  # one for each depth; for the megakernel one buffer (words, MAX_DEPTHS)
        if settings.schedule == "megakernel":
            self.active_masks = [device.buffer((self.mask_words, MAX_DEPTHS), "u4").fill(0)]
        if is_wavefront:
            self.active_masks = [device.buffer(self.mask_words, "u4") for _ in range(settings.max_depth + 1)]
            self.bounces_masks = device.buffer((settings.max_depth + 1, self.mask_words), "u4")  # by depth
            self.hit_mask, self.shadow_mask = device.buffer(self.mask_words, "u4"), device.buffer(self.mask_words, "u4")
            # float4s of a ray in each buffer: origins, directions, throughputs, radiances, hits, then the shadow rays'
            # directions and contributions. A hit of an instance has two, and so has a contribution whose shadow ray
            # may start elsewhere than at the path's vertex (equiangular.h).
            self.shadows_have_origins = settings.samples_segments
            hit = 2 if settings.has_instances or settings.models else 1
            counts = [1, 1, 1, 1, hit, 1, 1 + self.shadows_have_origins]
            self.state = tuple(device.buffer((self.padded_count * count, 4)).fill(0) for count in counts)
            self.origins, self.directions, _, self.radiances, self.hits, *self.shadow_rays = self.state
