"""The state of all rays of a picture on a device, as the schedules of shaders/raytracing/raytrace.cu keep it."""

GROUP = 128  # threads: four words of the stencil
MOST_DEPTHS = 16  # of a path
WORDS_PER_WARP = 4  # that a warp of a stage looks at one after the other


class Rays:
    """The state of all rays of a picture's size on a device, and its frame."""

    def __init__(
        self,
        device,
        size: tuple[int, int],
        depth: int,
        stencil: str,
        schedule: str,
        rows_of_a_hit: int = 1,
        variance=False,
    ):
        width, height = size
        self.count = -(-width // 8) * -(-height // 4) * 32
        self.padded = -(-self.count // (GROUP * WORDS_PER_WARP)) * GROUP * WORDS_PER_WARP
        self.threads = self.padded // WORDS_PER_WARP
        self.frame = device.buffer((height, width, 4))
        self.spread = device.buffer((height, width, 4)) if variance else None
        self.film = (self.frame, self.spread) if variance else (self.frame,)  # FRAME_TAKEN of shaders/raytracing/film.h
        self.counts = device.buffer(17, "u4")
        if schedule == "regenerate":  # its paths live in registers
            return
        self.words = self.padded if stencil == "flags" and schedule == "wavefront" else self.padded // 32
        if schedule == "megakernel":  # the words of all depths lie together
            self.living = [device.buffer((self.words, MOST_DEPTHS), "u4").fill(0)]
            return
        self.living = [device.buffer(self.words, "u4") for _ in range(depth + 1)]
        self.hitting, self.lit = device.buffer(self.words, "u4"), device.buffer(self.words, "u4")
        self.path = self.origins, self.directions, self.throughputs, self.radiances = _float4s(device, self.padded, 4)
        self.light_directions, self.light_brings = _float4s(device, self.padded, 2)
        self.hits = device.buffer((self.padded * rows_of_a_hit, 4)).fill(0)


def _float4s(device, count: int, number: int) -> list:
    return [device.buffer((count, 4)).fill(0) for _ in range(number)]
