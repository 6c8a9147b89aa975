"""The declarations of the C programs: settings of QUIC and of links, queues, technologies.

`settings.json` is the output of `xlink-sim --describe-settings`; `make docs` writes it and a test compares the two.
Each setting is declared once, as a row of a table in C, from which fields of YAML files, reference pages and the JSON
schema follow. Schedulers, congestion controllers, re-injection modes and queue disciplines are open sets: the built
program is asked for those that the file does not have yet.
"""

import json
import re
import subprocess
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from railyard.base.models import FrozenModel
from railyard.base.paths import program_if_built
from railyard.base.yamlfile import near_miss

FILE = Path(__file__).with_name("settings.json")


class Setting(FrozenModel):
    """A row of the table. `least` and `most` are in the unit of the name: `t_th1_ms` in milliseconds."""

    name: str
    kind: Literal["whole", "decimal", "ms", "probability", "switch", "flag", "word", "text"]
    sides: tuple[str, ...]  # the programs that have the option: "server", "player"
    help: str
    words: tuple[str, ...] = ()
    open: bool = False  # another build may have more words
    least: float = 0
    most: float = 0
    pattern: str | None = None
    value: str | None = None  # its placeholder in `--help`
    default: str | None = None

    @property
    def option(self) -> str:
        """Its name on a command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def annotation(self) -> Any:
        """The type of its field in a YAML file."""
        match self.kind:
            case "whole":
                return Annotated[int, Field(ge=int(self.least), le=int(self.most))]
            case "decimal":
                return Annotated[float, Field(ge=self.least, le=self.most)]
            case "flag":
                return bool
            case "switch" | "word" if not self.open:
                return Literal[self.words or ("off", "on")]
            case "word":
                return self._open_annotation
            case _:
                schema = {"type": "string", "pattern": self.pattern}
                return Annotated[str, AfterValidator(self._formed), WithJsonSchema(schema)] if self.pattern else str

    def _formed(self, value: str) -> str:
        if not self.takes(value):
            raise ValueError(f"it takes {self.wanted}, not {value!r}.")
        return value

    @property
    def _open_annotation(self) -> Any:
        schema = {"type": "string", "examples": list(self.words)}
        return Annotated[str, AfterValidator(self._known), WithJsonSchema(schema)]

    def known_words(self) -> tuple[str, ...]:
        """Its words, including those of the build."""
        return built_words().get(self.name, self.words) if self.open else self.words

    def _known(self, value: str) -> str:
        if value not in self.words and value not in self.known_words():
            raise ValueError(f"unknown {self.name} '{value}'; {near_miss(value, self.known_words())}")
        return value

    def job_value(self, text: str) -> str | int | float:
        """The value in a job of xlink-sim."""
        match self.kind:
            case "whole":
                return int(text)
            case "decimal":
                return float(text)
            case _:
                return text

    @property
    def wanted(self) -> str:
        """The values that it takes, in words for messages."""
        match self.kind:
            case "whole":
                return f"a whole number from {self.least:.12g} to {self.most:.12g}"
            case "ms":
                return f"ms from {self.least:.12g} to {self.most:.12g}"
            case "probability":
                return "a probability, 0 to 1"
            case "word":
                return "true or false" if self.is_truth else " or ".join(self.words)
            case _:
                value = "a rate with its unit, such as 2mbps" if self.value == "RATE" else self.value
                return f"{value} ({self.help.rstrip('.')})" if self.pattern else "a text"

    @property
    def is_truth(self) -> bool:
        """Whether YAML and JSON write it as true or false."""
        return self.words == ("no", "yes")

    def takes(self, value: object) -> bool:
        """Whether a value of a YAML file has the right form."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        match self.kind:
            case "whole":
                return is_number and isinstance(value, int) and self.least <= value <= self.most
            case "ms":
                return is_number and self.least <= float(str(value)) <= self.most
            case "probability":
                return is_number and 0 <= float(str(value)) <= 1
            case "word":
                return isinstance(value, bool) if self.is_truth else value in self.words
            case _:
                text = format(Decimal(str(value)), "f") if is_number and self.pattern else value
                return isinstance(text, str) and re.fullmatch(self.pattern or r"[^\0\n]+", text) is not None


class QuicScheme(FrozenModel):
    name: str
    about: str
    multipath: bool
    migration: bool
    settings: dict[str, str]  # settings that differ from the transport's defaults


class Queue(FrozenModel):
    """A queue discipline."""

    name: str
    options: tuple[str, ...]
    missing: str | None = None  # the error without options, if it needs some


class _Described(BaseModel):
    settings: list[Setting]
    links: list[Setting]
    queues: list[Queue]
    technologies: tuple[str, ...]
    schemes: list[QuicScheme]
    foresight: tuple[str, ...]  # schedulers that must know the links' future


@cache
def built() -> dict[str, Any]:
    """The declarations of the built program. Empty if it is not built."""
    program = program_if_built("xlink-sim")
    if program is None:
        return {}
    done = subprocess.run([str(program), "--describe-settings"], capture_output=True, text=True, check=True, timeout=20)
    described: dict[str, Any] = json.loads(done.stdout)
    return described


@cache
def built_words() -> dict[str, tuple[str, ...]]:
    """The words of each open setting in the built program. Empty if it is not built."""
    return {row["name"]: tuple(row["words"]) for row in built().get("settings", ()) if row.get("open")}


def queues() -> dict[str, Queue]:
    """The queue disciplines, including those of the build."""
    return QUEUES | {row["name"]: Queue.model_validate(row) for row in built().get("queues", ())}


DESCRIBED = _Described.model_validate_json(FILE.read_bytes())
LINK_SETTINGS = {setting.name: setting for setting in DESCRIBED.links}
QUEUES = {queue.name: queue for queue in DESCRIBED.queues}
