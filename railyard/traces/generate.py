"""Writes generated pairs: the traces, the parameters that give the same bytes again, and the index."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from railyard.base.models import StrictModel
from railyard.base.yamlfile import load_yaml, parse
from railyard.traces.index import PairEntry, PathEntry, write_entry
from railyard.traces.model import generate_opportunities
from railyard.traces.names import PairName
from railyard.traces.parameters import MAX_DURATION_S, STEP_MS, MobilityModel, PathModel
from railyard.traces.settings import Value
from railyard.traces.trace import FloatArray, format_trace

LICENCE = "Apache-2.0"
_PARAMETERS_HEADER = (
    "# Parameters of a generated trace pair: the same traces come again, byte for byte, from\n"
    "#   railyard traces generate --parameters {name}.yaml --out DIR\n"
)


class GeneratedPair(StrictModel):
    """Everything that decides the bytes of a generated pair."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    name: PairName
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    duration_s: Annotated[int, Field(ge=1, le=MAX_DURATION_S)]
    delay_traces: bool = False
    """Whether each path comes with a delay trace from the model's RTT."""
    model: MobilityModel

    def as_yaml(self) -> str:
        """The parameters as YAML, without those that are not used."""
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.delay_traces:
            del data["delay_traces"]
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def read_parameters(path: Path) -> GeneratedPair:
    """Reads the parameters beside a generated pair. Raises UserError with file and line."""
    return parse(load_yaml(path), GeneratedPair)


def format_delay_trace(rtt_ms: FloatArray) -> bytes:
    """The bytes of a delay trace (docs/reference/links.md): `ms,delay_ms`, half of the RTT for each direction.

    The last line closes the period.
    """
    delays = [f"{rtt / 2:.2f}" for rtt in rtt_ms.tolist()]
    lines = [f"{step * STEP_MS},{delay}\n" for step, delay in enumerate([*delays, delays[0]])]
    return "".join(lines).encode("ascii")


def pair_files(pair: GeneratedPair) -> dict[str, bytes]:
    """Names and bytes of the files of a pair: its traces, and its parameters."""
    files = {}
    for path in generate_opportunities(pair.model, pair.seed, pair.duration_s):
        for direction, opportunities in (("up", path.up), ("down", path.down)):
            files[f"{pair.name}.{path.name}.{direction}"] = format_trace(opportunities)
        if pair.delay_traces and path.rtt_ms is not None:
            files[f"{pair.name}.{path.name}.delay"] = format_delay_trace(path.rtt_ms)
    files[f"{pair.name}.yaml"] = (_PARAMETERS_HEADER.format(name=pair.name) + pair.as_yaml()).encode()
    return files


def _link(pair: GeneratedPair, path: PathModel) -> dict[str, Value]:
    """The link's settings: those of the model, and the delay trace, which does not include the radio's wake-up."""
    traced = pair.delay_traces and path.rtt is not None
    return (path.link or {}) | ({"delay_trace": f"{pair.name}.{path.name}.delay"} if traced else {})


def index_entry(pair: GeneratedPair) -> PairEntry:
    """The entry of a generated pair in the index."""
    paths = [
        PathEntry(
            name=path.name,
            technology=path.technology,
            uplink=f"{pair.name}.{path.name}.up",
            downlink=f"{pair.name}.{path.name}.down",
            base_rtt_ms=path.base_rtt_ms,
            queue=path.queue,
            kind="generated",
            resolution_ms=STEP_MS,
            link=_link(pair, path),
        )
        for path in pair.model.paths
    ]
    return PairEntry(
        name=pair.name,
        scenario=pair.model.scenario,
        licence=LICENCE,
        source=f"generated; model, parameters and seed in {pair.name}.yaml",
        paths=tuple(paths),
    )


def write_pair(pair: GeneratedPair, out: Path) -> list[Path]:
    """Generates a pair into a directory and enters it in the directory's index. Returns the files. Raises UserError."""
    return write_entry(out, pair_files(pair), index_entry(pair))
