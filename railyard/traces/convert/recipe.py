"""How a measurement becomes a trace, and several of them a pair: what `railyard traces convert` takes."""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field

from railyard.base.models import NotNegative, Positive, StrictModel, Text
from railyard.traces.index import MAX_BASE_RTT_MS, PairWords, ResolutionMs
from railyard.traces.names import DeviceName, Kind, OfAPair, QueueSpec, Technology
from railyard.traces.settings import LinkSettings

Format = Literal[
    "mahimahi", "saturatr", "raw", "rates", "movement", "pcap", "tshark", "iperf3", "iperf-text", "ibox", "sabre"
]
FORMATS: tuple[str, ...] = get_args(Format)
Unit = Literal["gbps", "mbps", "kbps", "bps", "bytes-per-s", "bytes", "packets"]
UNITS: tuple[str, ...] = get_args(Unit)
TimeUnit = Literal["s", "ms", "us", "ns"]
Direction = Literal["up", "down"]
SATURATR_PACKET_BYTES = 1432
"""A data packet of the original saturatr: 1400 of payload, 28 of UDP and IP headers, 4 as the link counts."""

Column = Annotated[Text, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
"""A column's name, or its number."""


class _Part(StrictModel):
    model_config = ConfigDict(populate_by_name=True)


class Microstructure(_Part):
    """Silences for a recording in bins, from recordings of packets."""

    donors: Annotated[tuple[Text, ...], Field(min_length=1, max_length=100)]
    """Mahimahi traces, packet by packet; relative to the recipe."""
    seed: Annotated[int, Field(ge=0, lt=2**63)]


class TraceRecipe(_Part):
    """One measurement, and how to read it."""

    file: Text
    """Relative to the recipe, or the name of a download."""
    member: Text | None = None
    """The file is a zip archive, and this the file in it; folders in the archive may be left out."""
    format: Annotated[Format | None, Field(alias="from")] = None
    """Without it: by the file's content."""
    start_s: NotNegative = 0.0
    duration_s: Positive | None = None
    scale: Positive = 1.0
    """All bytes are multiplied by it: 1.04 turns TCP payload into what a link carries."""
    unit: Unit | None = None
    """rates: unit of the column; bytes and packets are per bin. Without it the one that the column's name tells, else
    mbps."""
    time_column: Column | None = None
    """rates: name, or number from 1; without it the only one that is called a time, else the first."""
    rate_column: Column | None = None
    """rates: name, or number from 1; without it the one that is called a rate, and without names the one after the
    time."""
    time_unit: TimeUnit | None = None
    """rates: without it the one that the column's name tells, else by the size of times since 1970, else s."""
    bin_ms: Positive | None = None
    """rates: the length of all bins of a file that has no column of times. With microstructure: of any file; a Mahimahi
    trace does not tell it."""
    address: Text | None = None
    """pcap, tshark: the address of the measured host; packets to it are downlink."""
    direction: Direction = "down"
    """pcap, tshark: which packets; iperf3 --bidir: which of both."""
    packet_bytes: Annotated[int, Field(ge=1, le=65_535)] = SATURATR_PACKET_BYTES
    """saturatr: what one data packet counts on the link."""
    sender_id: int | None = None
    """saturatr: which session of a log with several; without it the last."""
    t0_epoch_s: NotNegative | None = None
    """saturatr, pcap, tshark: what is time 0, so that files get one time axis; without it the file's first packet."""
    microstructure: Microstructure | None = None


class PathRecipe(_Part):
    """One path of a pair."""

    name: DeviceName
    technology: Technology
    downlink: TraceRecipe
    uplink: TraceRecipe | None = None
    """Without it the downlink trace is replayed as the uplink too."""
    base_rtt_ms: Annotated[float, Field(ge=0, le=MAX_BASE_RTT_MS)] | None = None
    queue: QueueSpec | None = None
    link: LinkSettings | None = None
    """RTT, queue, and further settings of the link: without them those of the scenario and technology
    (docs/reference/traces.md), among them the wake-up of a cellular radio. `{}`: no settings."""
    kind: Kind | None = None
    resolution_ms: ResolutionMs | None = None
    """Kind and resolution: without them what the format of the downlink tells."""


class PairRecipe(PairWords):
    """A pair to be made from measurements."""

    paths: Annotated[tuple[PathRecipe, ...], OfAPair]


class RecipeFile(_Part):
    """A YAML file of pairs to be converted."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    pairs: tuple[PairRecipe, ...]
