"""JWildfire's NAME_fx_priority: whether a variation is applied before the others, with them or after them."""

from collections.abc import Mapping

from renderer.flames.variations import variation_table
from renderer.flames.xml import dialects
from renderer.flames.xml.attributes import AttributeParser

ENDING = "_fx_priority"


def apply_priorities(
    parser: AttributeParser, attributes: Mapping[str, str], variations: dict[str, float], parameters: dict[str, float]
) -> None:
    """Rename variations with -1 to pre_NAME and with 1 to post_NAME; count as ignored what cannot be moved."""
    for attribute, text in attributes.items():
        if not attribute.endswith(ENDING):
            continue
        name = dialects.variation_name(dialects.plain_name(attribute.removesuffix(ENDING)))
        if name not in variations:
            continue
        wanted = {"-1": "pre_", "0": "", "1": "post_"}.get(text.strip())
        own = "pre_" if name == "pre_blur" else variation_table()[name].stage
        if wanted == own:
            continue
        if own or wanted is None:
            parser.ignored[f"{attribute} {text[:8]} xforms"] += 1
            continue
        moved = wanted + name
        variations[moved] = variations.get(moved, 0.0) + variations.pop(name)
        for parameter in variation_table()[name].parameters:
            if parameter in parameters:
                parameters[wanted + parameter] = parameters.pop(parameter)
