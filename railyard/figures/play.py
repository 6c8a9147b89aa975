"""The part of a play that figures read. A run of a campaign is a play, and so is a play of a viewer of a population."""

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
        """The RCT of the earliest completion that the links allow."""
        ...

    @property
    def oracle_play_s(self) -> float | None:
        """The same in a play that has the oracle as its transport."""
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
        """First-frame latency in seconds, and whether it is exact. If not, it is a lower bound."""
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
        """Bytes that were in flight on a path when it was given up, and were sent again."""
        ...
