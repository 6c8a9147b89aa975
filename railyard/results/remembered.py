"""Keeps the last output about a campaign. If nothing has changed since, the same command shows it again without
reading the runs."""

import hashlib
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

from rich.console import Console

from railyard.base.jsonl import NOT_AS_WRITTEN, read_json
from railyard.base.paths import ROOT
from railyard.run.folders import write_json

FILE = ".shown.json"
OF_A_RUN = ("", "run.json", "player.jsonl", "server.jsonl", "mpshell.json", "qlog")
OF_THE_CAMPAIGN = ("report.html", "answer.json", "runs.parquet", "chunks.parquet", "links.parquet")


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return f"{file.name} -"
    return f"{file.name} {status.st_size} {status.st_mtime_ns}"


@cache
def _code() -> list[str]:
    files = (file for file in (ROOT / "railyard").rglob("*") if file.suffix != ".pyc" and file.is_file())
    return sorted(f"{file.parent} {_stamp(file)}" for file in files)


def state_of(folder: Path) -> str | None:
    """SHA-256 over the campaign's record and over sizes and times of the files that its output depends on: those of its
    runs, its tables and pages, and the code. None: the output also depends on other campaigns or on twins."""
    record = read_json(folder / "campaign.json")
    if record["experiment"].get("answer_of") or record["experiment"].get("twins"):
        return None
    facts = [json.dumps({name: value for name, value in record.items() if name != "started"}), *_code()]
    facts += [_stamp(folder / name) for name in OF_THE_CAMPAIGN]
    runs = (folder / "runs" / run for run in record["runs"])
    facts += [_stamp(run / name) for run in runs for name in OF_A_RUN]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def view(console: Console) -> str:
    """The properties of the console that change the output."""
    return f"{console.width} {console.color_system} {console.encoding} {Path.cwd()}"


def shown(folder: Path) -> dict[str, str]:
    """The last output, by view. Empty if something has changed since."""
    try:
        return _kept(folder, state_of(folder))
    except (OSError, *NOT_AS_WRITTEN):
        return {}


def _kept(folder: Path, state: str | None) -> dict[str, str]:
    """The output that is kept for a state, by view. Raises OSError or NOT_AS_WRITTEN if none is kept."""
    kept = read_json(folder / FILE)
    return dict(kept["shown"]) if kept["state"] == state else {}


def remember(folder: Path, console: Console, text: str) -> None:
    """Keeps an output. Ignores errors of writing, such as a full disk: this only saves time."""
    state, kept = state_of(folder), dict[str, str]()
    if state is None:
        return
    with suppress(OSError, *NOT_AS_WRITTEN):
        kept = _kept(folder, state)
    with suppress(OSError):
        write_json(folder / FILE, {"state": state, "shown": kept | {view(console): text}})
