"""What a figure reads of one play: a run of a campaign is one, and so is what a viewer of a population plays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Request(Protocol):
    """One chunk of the video."""

    @property
    def index(self) -> int: ...

    @property
    def rct_s(self) -> float: ...
    @property
    def completed(self) -> bool:
        """False: `rct_s` is a lower bound."""
        ...

    @property
    def oracle_s(self) -> float | None:
        """The earliest completion that the links allow, as an RCT."""
        ...

    @property
    def oracle_play_s(self) -> float | None:
        """The same in a play whose transport is the oracle."""
        ...

    @property
    def efficiency(self) -> float | None:
        """Oracle RCT / RCT; an upper bound if the request did not complete, None if the oracle is not known."""
        ...


class Play(Protocol):
    @property
    def chunks(self) -> Sequence[Request]: ...
    @property
    def failed(self) -> bool: ...
    @property
    def first_frame_counted(self) -> tuple[float, bool]:
        """First-frame latency in seconds, and whether it is exact: else it is a lower bound."""
        ...

    @property
    def rebuffer_counted_s(self) -> float: ...
    @property
    def play_time_s(self) -> float: ...
    @property
    def stream_bytes_sent(self) -> int | None:
        """Stream bytes that the server sent; None if the transport does not report it."""
        ...

    @property
    def reinjected_bytes(self) -> int | None: ...
    @property
    def given_up_bytes(self) -> int:
        """Bytes in flight on a path that was given up, which were sent again."""
        ...
