"""Untrusted XML by defusedxml: entities, which can expand without bound, are refused; every error is an InputError."""

from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException, ElementTree

from renderer.errors import InputError


def parse_xml(data: str | bytes, name: object) -> Element:
    """Parses a document and returns its root element; `name` is the file's name in error messages."""
    try:
        root: Element = ElementTree.fromstring(data)
        return root
    except DefusedXmlException as error:
        raise InputError(f"{name}: XML with entities is not read ({type(error).__name__})") from error
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:  # LookupError: unknown encoding
        raise InputError(f"{name}: not XML that can be read: {error or type(error).__name__}") from error
