"""The random numbers of java.util.Random, by the algorithm of its documentation.

JWildfire's figures depend on them: a seed of a file must give the same figure here.
"""

MASK = (1 << 48) - 1


class JavaRandom:
    """Draws the numbers that java.util.Random draws from the same seed."""

    def __init__(self, seed: int):
        self._state = (seed ^ 0x5DEECE66D) & MASK

    def _next(self, bits: int) -> int:
        """The next number of `bits` bits, signed if there are 32."""
        self._state = (self._state * 0x5DEECE66D + 0xB) & MASK
        value = self._state >> (48 - bits)
        return value - (1 << bits) if bits == 32 and value >> 31 else value

    def next_double(self) -> float:
        """Uniform in [0, 1), 53 bits."""
        return ((self._next(26) << 27) + self._next(27)) / (1 << 53)
