"""The schemes of QUIC and their settings, as the programs declare them.

`settings.json` is what `xlink-server --describe-settings` prints; `make docs` writes it and a test compares the two.
Each setting is declared once, in `lib/schemes/quic_settings.c`: from there come the fields of schemes, the
reference pages and the JSON schema. Schedulers, congestion controllers and re-injection modes are open sets: what a
build has and the file does not name yet is asked of the program.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from railyard.base.paths import programs_dir
from railyard.base.yamlfile import near_miss

FILE = Path(__file__).with_name("settings.json")


class Setting(BaseModel):
    """A row of the table. `least` and `most` are in the unit of the name: `t_th1_ms` in milliseconds."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["whole", "decimal", "switch", "flag", "word", "text"]
    sides: tuple[str, ...]  # "server", "player": whose option it is
    help: str
    words: tuple[str, ...] = ()
    open: bool = False  # another build may have more words
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
                return self._open_annotation if self.open else Literal[self.words]
            case _:
                return Annotated[str, Field(pattern=self.pattern)] if self.pattern else str

    @property
    def _open_annotation(self) -> Any:
        schema = {"type": "string", "examples": list(self.words)}
        return Annotated[str, AfterValidator(self._known), WithJsonSchema(schema)]

    def known_words(self) -> tuple[str, ...]:
        """Its words, those of the build included."""
        return built_words().get(self.name, self.words) if self.open else self.words

    def _known(self, value: str) -> str:
        if value not in self.words and value not in self.known_words():
            raise ValueError(f"unknown {self.name} '{value}'; {near_miss(value, self.known_words())}")
        return value

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
    foresight: tuple[str, ...]  # schedulers that must know what the links will do


@cache
def built_words() -> dict[str, tuple[str, ...]]:
    """The words of each open setting as the built program knows them; empty where it is not built."""
    server = programs_dir() / "xlink-server"
    if not os.access(server, os.X_OK):
        return {}
    done = subprocess.run([str(server), "--describe-settings"], capture_output=True, text=True, check=True, timeout=20)
    return {row["name"]: tuple(row["words"]) for row in json.loads(done.stdout)["settings"] if row.get("open")}


_DESCRIBED = _Described.model_validate_json(FILE.read_bytes())
SETTINGS = {setting.name: setting for setting in _DESCRIBED.settings}
QUIC_SCHEMES = {scheme.name: scheme for scheme in _DESCRIBED.schemes}
SCHEDULERS = SETTINGS["scheduler"].words
FORESIGHT_SCHEDULERS = _DESCRIBED.foresight
CONTROLLERS = SETTINGS["cc"].words
