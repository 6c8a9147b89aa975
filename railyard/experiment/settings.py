"""The schemes of QUIC and their settings, as the programs declare them.

`settings.json` is what `xlink-server --describe-settings` prints; `make docs` writes it and a test compares the two.
Each setting is declared once, in `schemes/quic_settings.c`: from there come the fields of an experiment's schemes, the
reference pages and the JSON schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FILE = Path(__file__).with_name("settings.json")


class Setting(BaseModel):
    """A row of the table. `least` and `most` are in the unit of the name: `t_th1_ms` in milliseconds."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["whole", "decimal", "switch", "flag", "word", "text"]
    sides: tuple[str, ...]  # "server", "player": whose option it is
    help: str
    words: tuple[str, ...] = ()
    least: float = 0
    most: float = 0
    pattern: str | None = None
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
            case "switch":
                return Literal["off", "on"]
            case "flag":
                return bool
            case "word":
                return Literal[self.words]
            case _:
                return Annotated[str, Field(pattern=self.pattern)] if self.pattern else str

    def job_value(self, text: str) -> str | int | float:
        """The value as a job of xlink-sim has it."""
        match self.kind:
            case "whole":
                return int(text)
            case "decimal":
                return float(text)
            case _:
                return text


class QuicScheme(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    about: str
    multipath: bool
    migration: bool
    settings: dict[str, str]  # what it sets beyond the transport's defaults


class _Described(BaseModel):
    settings: list[Setting]
    schemes: list[QuicScheme]


_DESCRIBED = _Described.model_validate_json(FILE.read_bytes())
SETTINGS = {setting.name: setting for setting in _DESCRIBED.settings}
QUIC_SCHEMES = {scheme.name: scheme for scheme in _DESCRIBED.schemes}
SCHEDULERS = SETTINGS["scheduler"].words
CONTROLLERS = SETTINGS["cc"].words
