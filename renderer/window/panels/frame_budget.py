"""How coarse a panel is drawn, and in how many bands, so that the window answers: from what its draws have cost."""

MOVING = 0.03  # seconds a draw may take while the user moves something
BAND = 0.03  # seconds that one draw may hold a GPU
SOFT_BAND = 0.06  # the same of GL that runs on the processor
CPU_BAND = 0.12  # the same of a compute device that is the processor, which the system shares out
ANIMATED = 0.25  # seconds that a frame may take of a picture that changes by itself, in as many bands as it needs
RESTING = 0.25  # seconds of a draw that cannot be cut, in the window's own GL; grows with every second of rest
LONGEST = 0.75  # up to this
DIVISORS = (1, 2, 4, 8)
COARSE = 4  # the divisor of a first draw, which tells what a pixel costs, of more pixels than
FEW = 1 << 16
SLACK = 1.5  # times its limit: a draw just over its time is no reason to start again


class Pace:
    """The divisor of one picture, and what a pixel of it costs at each divisor."""

    def __init__(self):
        self.divisor = 1
        self.forced = 0  # the divisor that the user asks for; 0 is automatic
        self.forget()

    def forget(self) -> None:
        """Another picture comes: its first draw compiles and tells nothing."""
        self._costs: dict[int, float] = {}  # seconds a pixel, by divisor
        self._latest, self._warm = 0.0, False

    def guess(self) -> None:
        """Other settings have other costs; the last one is kept as a guess."""
        if self._costs:
            self._costs = {self.divisor: self._latest}

    @property
    def known(self) -> bool:
        """Whether a draw has told its cost."""
        return bool(self._costs)

    def note(self, seconds: float, pixels: int) -> None:
        """What a whole sample of so many pixels took."""
        self._latest = seconds / pixels
        if self._warm:
            self._costs[self.divisor] = self._latest
        self._warm = True

    def seconds(self, pixels: float, divisor: int = 0) -> float:
        """What so many pixels take at a divisor, or at the one at hand: as it was measured there, or else last."""
        return (self._costs.get(divisor or self.divisor) or self._latest) * pixels

    def fitting(self, pixels: int, limit: float) -> int:
        """The smallest divisor at which a draw of a panel of so many pixels fits into `limit` seconds."""
        if self.forced:
            return self.forced
        if not self._costs:
            return COARSE if pixels > FEW else 1
        for divisor in DIVISORS:
            slack = SLACK if divisor == self.divisor else 1.0
            if self.seconds(pixels / divisor**2, divisor) <= limit * slack:
                return divisor
        return DIVISORS[-1]
