"""The form that starts a `railyard run`. Its rows are the declared settings of player and schemes."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from pydantic.fields import FieldInfo

from railyard.base.declared import Setting
from railyard.base.errors import UserError
from railyard.base.words import counted
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import SCHEME_SETTINGS, Experiment, PlayerSettings, experiment_of
from railyard.experiment.options import of_pairs, with_options
from railyard.experiment.settings import CONTROLLERS, QUIC_SCHEMES
from railyard.run.arena import arena_of
from railyard.run.campaign import identity_of
from railyard.run.folders import Identity
from railyard.run.resolve import qlog_of, resolve
from railyard.traces.library import at_hand

ARENA = "sim"
MOST_RUNS = 24
MOST_VIDEO_BYTES = 256_000_000  # of all runs together, which takes about ten seconds of a core
MOST_SEEDS = 12
PLAYER, SCHEME, RUN = "player.", "scheme.", "run."
OF_THE_RUN = ("start_offset_ms", "congestion", "time_limit_s")  # among an experiment's own fields


@dataclass(frozen=True)
class Row:
    """One field of the form. `words`: its values, if it is a choice."""

    name: str
    label: str
    help: str
    default: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """The result of a form: the arguments of `railyard`, and the identity of its results."""

    arguments: tuple[str, ...]
    runs: int
    identity: Identity


def _bounds(field: FieldInfo) -> str:
    """ "from 1 to 64"."""
    bounds = {name: getattr(one, name) for one in field.metadata for name in ("ge", "gt", "le") if hasattr(one, name)}
    range_parts = (
        [f"from {bounds['ge']:.12g}"] if "ge" in bounds else [f"above {bounds['gt']:.12g}"] if "gt" in bounds else []
    )
    return " ".join([*range_parts, *([f"to {bounds['le']:.12g}"] if "le" in bounds else [])])


def _row(prefix: str, name: str, field: FieldInfo) -> Row:
    default = "" if field.default is None else str(field.default).lower()
    optional = ("the player's own",) if NoneType in get_args(field.annotation) else ()
    choices = ("true", "false") if field.annotation is bool else CONTROLLERS if name == "congestion" else ()
    return Row(prefix + name, name, ", ".join(filter(None, (_bounds(field), *optional))), default, choices)


def player_rows() -> list[Row]:
    return [_row(PLAYER, name, field) for name, field in PlayerSettings.model_fields.items()]


def run_rows() -> list[Row]:
    return [_row(RUN, name, Experiment.model_fields[name]) for name in OF_THE_RUN]


def _range(setting: Setting) -> str:
    known = setting.kind in ("whole", "decimal")
    return f" From {setting.least:.12g} to {setting.most:.12g}." if known else ""


def scheme_rows() -> list[Row]:
    rows = [Row(f"{SCHEME}cc", "cc", "The congestion controller of this scheme alone.", "", CONTROLLERS)]
    for name, setting in SCHEME_SETTINGS.items():
        choices = setting.known_words() or (("on", "off") if setting.kind == "switch" else ())
        default = setting.default or "the scheme's"
        rows.append(Row(SCHEME + name, name, setting.help + _range(setting), default, choices))
    return rows


def pair_names() -> list[str]:
    return sorted(at_hand().pairs)


def _number(text: str, *kinds: type) -> Any:
    """The text as a number of the first kind that fits, else the text, about which the settings report an error."""
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text


def _scheme(form: Mapping[str, str]) -> dict[str, Any]:
    """The first scheme with its settings."""
    entry: dict[str, Any] = {"scheme": form.get("scheme", "")}
    for name, text in _given(form, SCHEME, {"cc": None, **SCHEME_SETTINGS}):
        setting = SCHEME_SETTINGS.get(name)
        kinds = {"whole": (int,), "decimal": (float,)}.get(setting.kind, ()) if setting else ()
        entry[name] = _number(text, *kinds)
    return entry


def _given(form: Mapping[str, str], prefix: str, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The values of these settings in the form. Raises UserError for an unknown one."""
    for name, text in form.items():
        bare = name.removeprefix(prefix)
        if name.startswith(prefix) and text:
            _check("setting", bare, known)
            yield bare, text


def _value(text: str) -> Any:
    return {"true": True, "false": False}.get(text, _number(text, int, float))


def _settings(form: Mapping[str, str], beside: Sequence[str]) -> list[str]:
    """The settings as values of --set."""
    entry = _scheme(form)
    others = [{"scheme": name} for name in beside if {"scheme": name} != entry]
    changed = {"schemes": [entry, *others]}
    changed |= {name: _value(text) for name, text in _given(form, RUN, OF_THE_RUN)}
    changed |= {PLAYER + name: _value(text) for name, text in _given(form, PLAYER, PlayerSettings.model_fields)}
    return [f"{name}={json.dumps(value)}" for name, value in changed.items()]


def _check(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UserError(f"there is no {what} '{value}'; {near_miss(value, known)}")


def asked_of(form: Mapping[str, str], beside: Sequence[str]) -> Asked:
    """Reads the form. Raises UserError with a sentence for its user."""
    pair, seeds = form.get("pair", ""), _number(form.get("seeds") or "1", int)
    _check("pair", pair, pair_names())
    for name in (form.get("scheme", ""), *beside):
        _check("scheme", name, tuple(QUIC_SCHEMES))
    if not isinstance(seeds, int) or not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"seeds takes a whole number from 1 to {MOST_SEEDS}, not '{seeds}'.")
    settings = _settings(form, beside)
    document = with_options(of_pairs([pair]), [], None, [*settings, f"seeds={seeds}"])
    checked = experiment_of(document)
    arena_of(ARENA).check()
    if any(scheme.thresholds for scheme in checked.schemes):
        raise UserError("thresholds in percent are measured first, which takes long; `railyard run` does it.")
    specs = resolve(checked, document)
    video_bytes = len(specs) * checked.player.video_bytes
    if len(specs) > MOST_RUNS or video_bytes > MOST_VIDEO_BYTES:
        raise UserError(
            f"that is {counted(len(specs), 'run')} with {video_bytes / 1e6:.0f} MB of video; here at most {MOST_RUNS} "
            f"runs with {MOST_VIDEO_BYTES / 1e6:g} MB are played, and `railyard run` plays more."
        )
    identity = identity_of(checked.model_copy(update={"qlog": qlog_of(checked, len(specs))}), specs)
    options = [word for setting in settings for word in ("--set", setting)]
    return Asked(("run", "--pair", pair, *options, "--seeds", str(seeds)), len(specs), identity)
