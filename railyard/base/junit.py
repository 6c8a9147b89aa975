"""JUnit XML for CI."""

from collections.abc import Mapping
from xml.etree import ElementTree


def written(root: ElementTree.Element, counts: Mapping[str, str]) -> bytes:
    """The document. `counts`: the attributes of each test suite, by the elements that they count."""
    for suite in root:
        for attribute, tag in counts.items():
            suite.set(attribute, str(len(suite.findall(tag))))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
