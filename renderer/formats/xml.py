"""XML of strangers: no entities, which expand; every error is an InputError that names the file. Uses defusedxml."""

from typing import Any

from defusedxml import DefusedXmlException, ElementTree

from renderer.errors import InputError


def parse_xml(data: str | bytes, name: object) -> Any:
    """The root element of a document; `name` is its file in messages."""
    try:
        return ElementTree.fromstring(data)
    except DefusedXmlException as error:
        raise InputError(f"{name}: XML with entities is not read ({type(error).__name__})") from error
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:  # LookupError: of an encoding
        raise InputError(f"{name}: not XML that can be read: {error or type(error).__name__}") from error
