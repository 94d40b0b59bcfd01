"""Procedural pictures for the makers of scenes: wood, linen, glazes, fruit. Arrays (height, width, 3) uint8."""

import io

import numpy as np
from PIL import Image

from assets.makers.gltf_builder import Maker


def noise(rng: np.random.Generator, shape: tuple[int, int], power: float = 1.4, stretch: float = 1.0) -> np.ndarray:
    """Noise (height, width) that repeats, of mean 0 and deviation 1; its amplitude falls by frequency^-power.

    `stretch` above 1 draws it out along x.
    """
    y, x = np.fft.fftfreq(shape[0], 1 / shape[0])[:, None], np.fft.fftfreq(shape[1], 1 / shape[1])[None, :]
    amplitude = (np.hypot(y, x * stretch) + 1.0) ** -power
    amplitude[0, 0] = 0
    found = np.fft.ifft2(np.fft.fft2(rng.normal(0, 1, shape)) * amplitude).real
    return found / found.std()


def mixed(weight: np.ndarray, low: tuple, high: tuple) -> np.ndarray:
    """Colors (..., 3) from `low` where the weight is 0 to `high` where it is 1."""
    weight = np.clip(weight, 0, 1)[..., None]
    return np.array(low) * (1 - weight) + np.array(high) * weight


def smooth(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below `low`, 1 above `high`, smooth between; `low` may be above `high`."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def bytes_of(color: np.ndarray) -> np.ndarray:
    """Values of 0 to 255 as uint8."""
    return np.clip(np.round(color), 0, 255).astype("u1")


def normals_of(height: np.ndarray, strength: float) -> np.ndarray:
    """The normal picture of a height field that repeats; `strength` is a pixel's slope for a step of 1."""
    slope = [strength * (np.roll(height, 1, axis) - np.roll(height, -1, axis)) / 2 for axis in (1, 0)]
    normal = np.stack([slope[0], -slope[1], np.ones(height.shape)], 2)
    return bytes_of((normal / np.linalg.norm(normal, axis=2, keepdims=True) + 1) * 127.5)


def jpeg(maker: Maker, pixels: np.ndarray, quality: int = 88, **sampler: int) -> int:
    """A texture of the maker's file, as JPEG."""
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=quality, subsampling=0 if quality > 90 else 2)
    image = maker.add("images", {"bufferView": maker.view(data.getvalue()), "mimeType": "image/jpeg"})
    return maker.add("textures", {"source": image, "sampler": maker.add("samplers", sampler or {"wrapS": 10497})})


def wood(rng: np.random.Generator, shape: tuple[int, int] = (384, 512)) -> tuple[np.ndarray, np.ndarray]:
    """Walnut boards along x: colors, and a picture of roughness in its green channel."""
    y, x = np.mgrid[: shape[0], : shape[1]] / shape[0]
    board = np.floor(y * 3)
    warp = noise(rng, shape, 1.9, 6.0) * 0.05 + board * 0.37
    rings = np.abs(((y + warp) * 9 + 0.4 * np.sin(2 * np.pi * (x * 0.75 + board / 3))) % 1 - 0.5) * 2
    pores = smooth(noise(rng, shape, 0.45, 22.0), 0.9, 2.0)
    fine = noise(rng, shape, 0.9, 14.0)
    tone = 0.42 * smooth(rings, 0.1, 1.0) + 0.3 + 0.08 * fine + 0.16 * np.sin(board * 2.4)
    color = mixed(tone, (44, 24, 14), (140, 88, 52)) * (1 - 0.5 * pores[..., None])
    gap = smooth(np.abs(y * 3 - np.round(y * 3)), 0.0, 0.016)[..., None]
    rough = 95 + 60 * pores + 10 * fine + 30 * (1 - gap[..., 0])
    shine = np.zeros((*shape, 3))
    shine[..., 1] = rough
    return bytes_of(color * (0.25 + 0.75 * gap)), bytes_of(shine)


def linen(rng: np.random.Generator, size: int = 128, threads: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Linen, which repeats: colors and normals."""
    y, x = np.mgrid[:size, :size] * (threads / size)
    over = (np.floor(x) + np.floor(y)) % 2 == 0
    across, along = np.sin(np.pi * (x % 1)), np.sin(np.pi * (y % 1))
    slub = 1 + 0.12 * np.where(over, rng.normal(0, 1, threads)[x.astype(int)], rng.normal(0, 1, threads)[y.astype(int)])
    height = np.where(over, across * (0.5 + 0.5 * along), along * (0.5 + 0.5 * across)) * slub
    tone = 0.62 + 0.38 * np.clip(height, 0, 1) + 0.02 * noise(rng, (size, size), 0.3)
    return bytes_of(mixed(tone, (120, 108, 92), (226, 217, 200))), normals_of(height, 1.6)


def plaster(rng: np.random.Generator, size: int = 256) -> np.ndarray:
    """An old dark wall."""
    cloud = noise(rng, (size, size), 1.7)
    spots = noise(rng, (size, size), 0.8)
    return bytes_of(mixed(0.5 + 0.17 * cloud + 0.07 * spots, (42, 38, 33), (92, 84, 70)))


def petal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Below 1 inside of a pointed arch: x from -1 to 1 across, y from 0 at its foot to 1 at its tip."""
    half = np.sqrt(np.clip(y, 0, 1)) ** 0.4 * np.clip(1 - y, 0, 1) ** 0.62 * 1.35
    return np.where((y > 0) & (y < 1), np.abs(x) / np.maximum(half, 1e-3), 9.0)


def porcelain(rng: np.random.Generator, shape: tuple[int, int] = (512, 768)) -> np.ndarray:
    """Cobalt painted on white for a vase: u around, v = 1 at the foot and 0 at the mouth's inside."""
    v, u = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None]
    blue = np.zeros(shape)

    def draw(found: np.ndarray, rows: slice = slice(None)) -> None:
        np.maximum(blue[rows], found, out=blue[rows])

    for at, half in ((0.965, 0.006), (0.945, 0.0025), (0.79, 0.0025), (0.775, 0.005), (0.44, 0.005), (0.425, 0.0025),
                     (0.28, 0.003), (0.225, 0.012)):  # fmt: skip
        draw(smooth(np.abs(v - at), half + 0.002, half))
    for number, (foot, tip, count) in enumerate(
        ((0.94, 0.8, 12), (0.30, 0.418, 10))
    ):  # lotus below, leaves on the neck
        x, y = (u * count) % 1 * 2 - 1, (v - foot) / (tip - foot)
        if number:
            y = 1 - y
        edge = petal(x * 1.05, y)
        draw(smooth(np.abs(edge - 0.9), 0.16, 0.08))
        draw(0.75 * smooth(petal(x * 1.9, y * 1.25 - 0.05), 1.0, 0.7))
    vine = 0.605 + 0.075 * np.sin(2 * np.pi * 4 * u)
    draw(0.95 * smooth(np.abs(v - vine), 0.0065, 0.003))
    for k in range(8):  # a flower in each bay of the vine
        fu = (k + 0.5) / 8
        fv = 0.605 - 0.045 * np.sin(2 * np.pi * 4 * fu)
        rows = slice(int((fv - 0.06) * shape[0]), int((fv + 0.06) * shape[0]))
        dx, dy = ((u[rows] - fu + 0.5) % 1 - 0.5) * 1.55, v[rows] - fv
        far, turn = np.hypot(dx, dy), np.arctan2(dy, dx)
        lobe = 0.056 * (0.74 + 0.26 * np.abs(np.cos(turn * 3)))
        draw(0.62 * smooth(far, lobe, lobe - 0.006) * smooth(far, 0.016, 0.02), rows)
        draw(smooth(np.abs(far - lobe + 0.003), 0.006, 0.003), rows)
        draw(smooth(far, 0.013, 0.010), rows)
        draw(0.7 * smooth(np.abs(np.sin(turn * 3)) * far, 0.0035, 0.0015) * (far < lobe), rows)
    for k in range(24):  # leaves along it
        lu = (k + 0.5) / 24
        lv = 0.605 + 0.075 * np.sin(2 * np.pi * 4 * lu)
        rows = slice(int((lv - 0.065) * shape[0]), int((lv + 0.065) * shape[0]))
        way = (1 if k % 2 else -1) * (0.9 + 0.3 * np.sin(9.0 * k)) + (np.pi if k % 3 == 0 else 0)
        dx, dy = ((u[rows] - lu + 0.5) % 1 - 0.5) * 1.55, v[rows] - lv
        along, across = dx * np.cos(way) + dy * np.sin(way), -dx * np.sin(way) + dy * np.cos(way)
        draw(0.8 * smooth(petal(across / 0.018, along / 0.06), 1.0, 0.75), rows)
    wash = np.clip(blue * (0.86 + 0.12 * noise(rng, shape, 1.0)), 0, 1)
    white = mixed(0.5 + 0.12 * noise(rng, shape, 1.8), (222, 226, 224), (238, 238, 232))
    return bytes_of(
        white * (1 - wash[..., None]) + mixed(1.5 - 1.25 * wash, (8, 18, 84), (56, 84, 164)) * wash[..., None]
    )


def hammered(rng: np.random.Generator, size: int = 160, dents: int = 64) -> np.ndarray:
    """Normals of dents of a hammer, which repeat."""
    at = rng.random((dents, 2))
    y, x = np.mgrid[:size, :size] / size
    gaps = [np.abs(c[..., None] - at[:, k]) for k, c in enumerate((x, y))]
    far = np.hypot(*(np.minimum(gap, 1 - gap) for gap in gaps)).min(-1)
    return normals_of((far * size) ** 2, 0.025)


def peel(rng: np.random.Generator, size: int = 128) -> np.ndarray:
    """Normals of the pores of an orange."""
    return normals_of(-(np.abs(noise(rng, (size, size), 0.25)) ** 1.4), 0.12)


def skin(rng: np.random.Generator, low: tuple, high: tuple, blush: tuple, spots: tuple, streaks: float) -> np.ndarray:
    """The skin of a pear or an apple: a blush on one side, streaks from top to bottom where they are above 0, spots."""
    shape = (128, 192)
    v, u = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None]
    color = mixed(0.5 + 0.22 * noise(rng, shape, 1.6), low, high)
    lines = noise(rng, shape[::-1], 1.0, 9.0).T
    side = 0.5 + 0.5 * np.cos(2 * np.pi * (u - 0.25)) + 0.12 * noise(rng, shape, 1.4) + streaks * lines
    weight = smooth(side, 0.45, 1.15) if not streaks else smooth(side + 0.3, 0.1, 1.3)
    color = color * (1 - weight[..., None]) + np.array(blush) * weight[..., None]
    dots = smooth(noise(rng, shape, 0.1), 2.1, 2.7)[..., None] * 0.55
    return bytes_of(color * (1 - dots) + np.array(spots) * dots)


def lemon_half(size: int = 192) -> np.ndarray:
    """The cut face of a lemon: peel, pith, nine segments."""
    rng = np.random.default_rng(31)
    y, x = (np.mgrid[:size, :size] + 0.5) / size * 2 - 1
    far, turn = np.hypot(x, y), np.arctan2(y, x) / (2 * np.pi) * 9
    gap = np.abs(turn - np.round(turn)) * far * 2 * np.pi / 9
    inside = smooth(gap, 0.012, 0.035) * smooth(far, 0.86, 0.82) * smooth(far, 0.06, 0.1)
    cells = noise(rng, (size, size), 0.7)
    pulp = mixed(0.5 + 0.25 * cells + 0.3 * np.sin(far * 40 + cells), (222, 170, 42), (250, 226, 120))
    rim = mixed(smooth(far, 0.95, 0.97), (246, 238, 206), (232, 184, 30))
    return bytes_of(rim * (1 - inside[..., None]) + pulp * inside[..., None])


def leaf(size: int = 128) -> np.ndarray:
    """A pointed leaf on its stalk at the lower end, (size, size / 2, 4): it is cut out by its alpha."""
    y, x = np.mgrid[:size, : size // 2] / np.array([size, size // 2])[:, None, None]
    x = x * 2 - 1
    inside = petal(x * 1.22, np.clip(1 - y, 0.001, 1) * 1.02 - 0.02) < 1
    vein = smooth(np.abs(np.sin((1 - y - 0.28 * np.abs(x)) * 38)), 0.16, 0.04) * 0.35
    vein = np.maximum(vein, smooth(np.abs(x), 0.07, 0.02))
    color = mixed(vein, (58, 84, 44), (134, 150, 92)) * (0.85 + 0.25 * y[..., None])
    out = np.zeros((size, size // 2, 4))
    out[..., :3], out[..., 3] = color, np.where(inside, 255, 0)
    return bytes_of(out)


def shell(rng: np.random.Generator, shape: tuple[int, int] = (384, 128)) -> np.ndarray:
    """A nautilus: flames of rust from the keel over the older whorls, cream at the lip; v from the core to the lip."""
    v, u = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None]
    keel = np.abs((u + 0.5) % 1 - 0.5) * 2  # 0 at the keel, 1 at the core
    bent = v * 34 + 1.7 * keel**1.5 + 0.35 * noise(rng, shape, 1.6)
    width = 0.62 * smooth(keel, 0.95, 0.15) * smooth(v, 0.93, 0.62) * (0.9 + 0.2 * noise(rng, shape, 1.2))
    stripe = smooth(np.abs(bent % 1 - 0.5) * 2, width + 0.06, width - 0.1) * (width > 0.05)
    lines = 1 - 0.05 * smooth(np.abs((v * 120) % 1 - 0.5), 0.15, 0.05)[..., None]
    rust = mixed(0.5 + 0.3 * noise(rng, shape, 1.3), (112, 44, 20), (168, 82, 38))
    cream = mixed(0.5 + 0.2 * noise(rng, shape, 1.5), (226, 208, 184), (243, 233, 216))
    return bytes_of((cream * (1 - stripe[..., None]) + rust * stripe[..., None]) * lines)


def flame(size: int = 64) -> np.ndarray:
    """A candle's light from wick (v = 1) to tip (v = 0), (size, 8, 4): blue and clear below, white, then amber."""
    y = np.linspace(1, 0, size)[:, None]
    color = mixed(smooth(y, 0.1, 0.34), (26, 40, 120), (255, 178, 76))
    color = mixed(smooth(y, 0.6, 1.0), (0, 0, 0), (0, -70, -60)) + color
    alpha = 255 * (0.35 + 0.6 * smooth(y, 0.08, 0.3))
    return bytes_of(np.repeat(np.concatenate([color, alpha[..., None]], 2), 8, 1))
