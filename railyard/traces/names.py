"""The words of the index: path names, technologies, queues."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, WithJsonSchema

from railyard.base.declared import QUEUES, queues
from railyard.base.yamlfile import near_miss


def _not_the_kernels(name: str) -> str:
    if name in ("lo", "all", "default"):
        raise ValueError(f"'{name}' is a name that the kernel uses itself; choose another one.")
    return name


DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,14}$"), AfterValidator(_not_the_kernels)]
"""Name of a path, and of its network device: at most 15 characters, the kernel's limit."""

Technology = Literal["5g-sa", "5g-nsa", "wifi", "lte"]
"""Access technology, in the order in which a primary path is chosen (XLINK, section 5.3); as the programs have it."""
TECHNOLOGY_ORDER: tuple[Technology, ...] = get_args(Technology)

Recorded = Literal["together", "separately"]
"""How the recordings of a pair were made: at the same time and place, or as two single recordings."""

Kind = Literal["saturated-udp", "saturated-tcp", "tcp-goodput", "generated", "restored"]
"""What a trace is: what a sender delivered that kept the link full (over UDP, or over TCP as counted on the wire), the
payload that TCP delivered, which is a lower bound of the capacity, a model's output, or a recording in bins that was
given the silences of others (`traces convert --microstructure`)."""

QUEUE_FORM = r"^[a-z][a-z0-9_]*(:[a-z_]+=[0-9.]{1,12})*$"
_QUEUE_OPTION = re.compile(r"(?P<name>[a-z_]+)=[0-9.]{1,12}")


def check_queue(value: str) -> str:
    """Checks the form of a queue: a known discipline with options. The link library checks their values."""
    name, *options = value.split(":")
    known = QUEUES if name in QUEUES else queues()
    if name not in known:
        raise ValueError(f"'{value}' is no queue; {near_miss(name, known)}")
    for option in options:
        match = _QUEUE_OPTION.fullmatch(option)
        if match is None or match["name"] not in known[name].options:
            takes = ", ".join(f"{known_option}=NUMBER" for known_option in known[name].options) or "no options"
            raise ValueError(f"'{value}' is no queue; {name} takes {takes}.")
    if not options and known[name].missing:
        raise ValueError(f"'{value}' is no queue; {known[name].missing}.")
    return value


QueueSpec = Annotated[
    str,
    AfterValidator(check_queue),
    WithJsonSchema({"type": "string", "pattern": QUEUE_FORM, "examples": list(QUEUES)}),
]
"""Queue of each direction of a path, as the mpshell option `queue=` takes it."""

PairName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""Name of a trace pair; part of file names and of run names."""


def _two_paths_or_more(paths: Any) -> Any:
    if len(paths) < 2:
        raise ValueError("a pair has two paths or more; add what is missing")
    names = [path.name for path in paths]
    if len(set(names)) != len(names):
        raise ValueError(f"the paths are named {', '.join(names)}; give each a name of its own")
    return paths


OfAPair = AfterValidator(_two_paths_or_more)
"""Checks the paths of a pair: at least two, with different names."""
