"""What lateness can have added to a result: a bound.

What ends a chunk late is a chain of events, each of which waits for the one before: a packet leaves a link, an endpoint
handles it and sends another, which leaves a link at least one one-way delay later, and so on. Each event is late by at
most what was recorded at its time. The bound is the largest sum of lateness over any such chain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SLOT_MS = 5.0  # of mpshell's record of lateness


@dataclass(frozen=True)
class Chain:
    """The lateness of links and of endpoints, in µs, slot by slot, and the spacing of a chain's events."""

    links_us: Sequence[float]
    endpoints_us: Sequence[float]
    delay_ms: float  # the shortest one-way delay of the links
    slot_ms: float = SLOT_MS

    def bound_us(self, begin_s: float, end_s: float) -> float:
        """What lateness can have added between two times of the run, since t0.

        L(i), E(i): lateness of links and endpoints in slot i; d: the delay in slots. Backward over the slots,

            A(i) = max(A(i + 1), B(i), L(i) + B(i + L(i)))           the chain waits for a link,
            B(i) = max(B(i + 1), A(i + d), E(i) + A(i + E(i) + d))   the chain waits for an endpoint,

        and the bound is A of the first slot. With a delay below a slot, d is one slot, and L and E count as often as a
        chain fits into it. Example: 15 ms of delay, links 0.1 ms late and endpoints on time: 0.1 ms for each 15 ms.
        """
        first = max(0, math.floor(1000 * begin_s / self.slot_ms))
        slots = min(max(len(self.links_us), len(self.endpoints_us)), math.ceil(1000 * end_s / self.slot_ms)) - first
        if slots <= 0:
            return 0.0
        spacing = max(1, math.floor(self.delay_ms / self.slot_ms))
        repeats = 1 if self.delay_ms >= self.slot_ms else math.ceil(self.slot_ms / max(1.0, self.delay_ms))
        links = [repeats * value for value in self.links_us[first : first + slots]]
        endpoints = [repeats * value for value in self.endpoints_us[first : first + slots]]
        links += [0.0] * (slots - len(links))
        endpoints += [0.0] * (slots - len(endpoints))
        slot_us = 1000 * self.slot_ms
        before_link = [0.0] * (slots + spacing + 1)  # A
        before_endpoint = [0.0] * (slots + spacing + 1)  # B
        for i in range(slots - 1, -1, -1):
            late = endpoints[i]
            then = min(slots, i + int(late / slot_us) + spacing)
            before_endpoint[i] = max(before_endpoint[i + 1], before_link[i + spacing], late + before_link[then])
            late = links[i]
            then = min(slots, i + int(late / slot_us))
            before_link[i] = max(before_link[i + 1], before_endpoint[i], late + before_endpoint[then])
        return min(before_link[0], 1e6 * (end_s - begin_s))
