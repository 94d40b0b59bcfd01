"""What the readers still get wrong: kept inputs that fail, by reason; an entry goes when that is mended.

A random run may meet the mechanisms of these inputs; it may meet no other.
"""

REASONS: dict[str, tuple[str, ...]] = {}
KNOWN = {name: reason for reason, names in REASONS.items() for name in names}
