"""The checked plan of an export, and the recipe that its frames share."""

from dataclasses import dataclass
from pathlib import Path

from renderer.export.frames import FILMS, pattern_of
from renderer.pictures import recipe_of
from renderer.scene.scene import Scene


@dataclass(frozen=True)
class Plan:
    """What an export will do. `numbers` is None for a still, else the frames; the first one shows `moment`."""

    scene: Scene
    output: Path
    size: tuple[int, int]
    numbers: list[int] | None
    moment: float
    rate: int
    bits: int
    tile: int
    denoise: bool = False
    samples: int | None = None  # None: what the picture says

    @property
    def pattern(self) -> Path:
        return pattern_of(self.output)

    @property
    def is_film(self) -> bool:
        return self.numbers is not None and self.output.suffix.lower() in FILMS

    @property
    def layers(self) -> bool:
        return self.output.suffix.lower() == ".exr"

    def moment_of(self, number: int) -> float:
        return self.moment + (number - self.numbers[0]) / self.rate


def recipe_of_frames(plan: Plan) -> dict:
    """What all frames have in common and depend on."""
    facts = dict(size=list(plan.size), samples=plan.samples, bits=plan.bits)
    recipe = recipe_of(plan.scene, plan.pattern.resolve().parent, **facts)
    recipe |= {"denoise": True} if plan.denoise else {}
    return recipe | {"moment": plan.moment, "rate": plan.rate}
