"""The words of the index: path names, technologies, queues."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,15}$")]
"""Name of a path, and of its network device: at most 15 characters, the kernel's limit."""

Technology = Literal["5g-sa", "5g-nsa", "wifi", "lte"]
"""Access technology, in the order in which a primary path is chosen (XLINK, section 5.3)."""

Recorded = Literal["together", "separately"]
"""How the recordings of a pair were made: at the same time and place, or as two single recordings."""

Kind = Literal["saturated-udp", "saturated-tcp", "tcp-goodput", "generated", "restored"]
"""What a trace is: what a sender delivered that kept the link full (over UDP, or over TCP as counted on the wire), the
payload that TCP delivered, which is a lower bound of the capacity, a model's output, or a recording in bins that was
given the silences of others (`traces convert --microstructure`)."""

QUEUE_PATTERN = (
    r"^(infinite|(droptail|drophead)(:(packets|bytes)=[1-9][0-9]{0,11})+"
    r"|(codel|pie|fq_codel)(:(packets|bytes|target|interval|qdelay_ref|max_burst|flows|quantum)=[0-9.]{1,12})*)$"
)

QueueSpec = Annotated[str, Field(pattern=QUEUE_PATTERN)]
"""Queue of each direction of a path, as the mpshell option `queue=` takes it."""

PairName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""Name of a trace pair; part of file names and of run names."""
