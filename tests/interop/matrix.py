"""`make interop`: every test case × every foreign stack × both directions, as a table and a page.

    python -m interop.matrix --out build/interop [--virtual] [--jobs N] [--times N] [--add]
        [--peer NAME ...] [--case NAME ...] [--check]

Each cell keeps its logs below the output folder. A cell whose result depends on chance runs N times, with one seed
after the other, and its sign is k/N: it passed k times. With --virtual each runs in a Linux kernel of its own, in
virtual time: the same seed gives the same packets, whatever else the machine does. The exit code is 1 if a cell
failed, at least half of the times, that interop.defects does not list as an error of the peer.
"""

import argparse
import datetime
import html
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from interop.cases import BY_NAME, CASES, Case
from interop.defects import DEFECTS
from interop.peers import FOREIGN, XLINK, Peer, by_name
from railyard.base.paths import ROOT, program

CELL_EXTRA_S = 45
VIRTUAL_LIMIT_S = 900  # of the host's time
TIMES = 5  # of a cell that depends on chance

PASSED_ON = (
    "PICOQUICDEMO",
    "HOME",
    "TMPDIR",
    "RAILYARD_BIN",
    "RAILYARD_KERNEL",
    "RAILYARD_KERNEL_CACHE",
    "XDG_CACHE_HOME",
)
SIGNS = {"passed": "✓", "failed": "✗", "unsupported": "·", "missing": "—"}


@dataclass(frozen=True)
class Cell:
    case: str
    server: str
    client: str
    verdict: str  # passed, failed, unsupported (by one of the two), missing
    reason: str | None = None
    seconds: float | None = None
    seen: dict[str, Any] | None = None
    passed: int | None = None  # number of passed `tries`, if it depends on chance
    tries: int = 1

    def sign(self) -> str:
        return SIGNS[self.verdict] if self.passed is None else f"{self.passed}/{self.tries}"


@dataclass(frozen=True)
class Arena:
    """Where cells run: on this machine, in namespaces, as root; or each in a kernel of its own, in virtual time."""

    is_virtual: bool = False
    seed: int = 1  # of the relay's losses; in virtual time of all randomness
    image: Path | None = None  # the root folder of our endpoint's image, in place of this tree's programs

    def words(self, folder: Path) -> list[str]:
        """What comes before a cell's command; the cell writes below `folder` alone."""
        namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if not self.is_virtual:
            return namespaces
        kernel = [str(program("vkernel")), "--seed", str(self.seed), "--log", str(folder / "kernel.log")]
        kernel += ["--folder", str(folder), "--at", str(folder), "--limit", str(VIRTUAL_LIMIT_S), "--"]
        return kernel + namespaces

    def limit_s(self, case: Case) -> int:
        return CELL_EXTRA_S + (VIRTUAL_LIMIT_S if self.is_virtual else case.timeout_s)


KEPT = ("cell.log", "kernel.log", "server.log", "client.log", "server-logs", "client-logs", "downloads", "result.json")


def run_cell(case: Case, server: Peer, client: Peer, keep: Path | None = None, arena: Arena | None = None) -> Cell:
    """Runs one cell. `keep`: where its logs stay."""
    arena = arena or Arena()
    with tempfile.TemporaryDirectory(prefix="railyard-interop-") as temporary:
        folder = Path(temporary)
        spec: dict[str, Any] = {"case": case.name, "server": server.name, "client": client.name}
        spec |= {"folder": temporary, "result": str(folder / "result.json"), "seed": arena.seed}
        spec |= {"image": str(arena.image)} if arena.image is not None else {}
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        words = [*arena.words(folder), sys.executable, "-m", "interop.cell", str(folder / "spec.json")]
        environment = {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, env=environment, timeout=arena.limit_s(case)
            )
            (folder / "cell.log").write_text(done.stderr, encoding="utf-8")
            said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            said = "the cell did not end in time"
        if (folder / "result.json").exists():
            result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        else:
            result = {"verdict": "failed", "reason": f"the cell broke off: {said}"}
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for name in KEPT:
                if (folder / name).exists():
                    subprocess.run(["cp", "-r", folder / name, keep], check=True)
    return Cell(case.name, server.name, client.name, **result)


def run_often(case: Case, server: Peer, client: Peer, keep: Path, arena: Arena, times: int) -> Cell:
    """Runs a cell once, or `times` times if it depends on chance, each with a seed and a folder of its own.

    In real time its tries are side by side: they wait most of the time.
    """
    if not case.chance:
        return run_cell(case, server, client, keep, arena)

    def one(i: int) -> Cell:
        return run_cell(case, server, client, keep / str(i + 1), replace(arena, seed=arena.seed + i))

    with ThreadPoolExecutor(1 if arena.is_virtual else 1 + (os.cpu_count() or 1)) as pool:
        cells = list(pool.map(one, range(times)))
    if cells[0].verdict == "unsupported":
        return cells[0]
    failed = [(i + 1, cell) for i, cell in enumerate(cells) if cell.verdict == "failed"]
    reasons = "; ".join(f"try {i}: {cell.reason}" for i, cell in failed)
    seconds = [cell.seconds for cell in cells if cell.seconds is not None]
    return replace(
        failed[0][1] if failed else cells[0],
        reason=reasons or None,
        seconds=statistics.median(seconds) if seconds else None,
        passed=times - len(failed),
        tries=times,
    )


def _told(cell: Cell) -> Cell:
    if cell.verdict != "missing":
        seconds = "" if cell.seconds is None else f"{cell.seconds:.2f} s "
        about = f"{cell.case}: {cell.server} serves {cell.client} {seconds}{cell.reason or ''}"
        print(f"{cell.sign()} {about}", flush=True)
    return cell


def run_matrix(
    foreign: Sequence[Peer],
    cases: Sequence[Case],
    out: Path,
    arena: Arena | None = None,
    jobs: int = 1,
    times: int = TIMES,
) -> list[Cell]:
    def one(case: Case, server: Peer, client: Peer, missing: str | None) -> Cell:
        if missing is not None:
            return Cell(case.name, server.name, client.name, "missing", missing)
        keep = out / "cells" / f"{case.name}-{server.name}-{client.name}"
        return _told(run_often(case, server, client, keep, arena or Arena(), times))

    def wanted() -> Iterator[tuple[Case, Peer, Peer, str | None]]:
        for peer in foreign:
            missing = peer.missing()
            for case in cases:
                for server, client in ((XLINK, peer), (peer, XLINK)):
                    yield case, server, client, missing

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda one_of: one(*one_of), wanted()))


def _direction(cells: Sequence[Cell], case: str, server: str, client: str) -> Cell | None:
    return next((c for c in cells if (c.case, c.server, c.client) == (case, server, client)), None)


def text_table(cells: Sequence[Cell], foreign: Sequence[Peer]) -> str:
    """Rows are cases; of each peer the first sign is our server with its client, the second the other way."""
    cases = list(dict.fromkeys(cell.case for cell in cells))
    width = max(len(case) for case in cases)
    lines = [" ".join([" " * width, *(f"{peer.name:>9}" for peer in foreign)])]
    for case in cases:
        signs = []
        for peer in foreign:
            pair = (_direction(cells, case, "xlink", peer.name), _direction(cells, case, peer.name, "xlink"))
            signs.append(" ".join(cell.sign() if cell else " " for cell in pair))
        lines.append(" ".join([case.ljust(width), *(f"{sign:>9}" for sign in signs)]))
    return "\n".join(lines) + "\n"


def markdown(cells: Sequence[Cell], foreign: Sequence[Peer], about: str) -> str:
    """The results for a page of documentation: the table, the versions of the peers, and why cells failed."""
    versions = ", ".join(f"{peer.name} {peer.version() or '?'}" for peer in foreign)
    lines = [about, "", f"Versions: {versions}.", ""]
    lines += [f"| case | {' | '.join(peer.name for peer in foreign)} |", f"| --- |{' :---: |' * len(foreign)}"]
    for case in dict.fromkeys(cell.case for cell in cells):
        pairs = [
            [_direction(cells, case, *pair) for pair in (("xlink", peer.name), (peer.name, "xlink"))]
            for peer in foreign
        ]
        signs = (" ".join(cell.sign() if cell else SIGNS["unsupported"] for cell in pair) for pair in pairs)
        lines.append(f"| {case} | {' | '.join(signs)} |")
    count = {verdict: sum(cell.verdict == verdict for cell in cells) for verdict in SIGNS}
    lines += ["", ", ".join(f"{number} cells {verdict}" for verdict, number in count.items() if number) + "."]
    for cell in (cell for cell in cells if cell.verdict == "failed"):
        peer = f"{cell.client}'s client" if cell.server == "xlink" else f"{cell.server}'s server"
        lines.append(f"- `{cell.case}`, {peer}: {cell.reason}")
    return "\n".join(lines) + "\n"


def _about_run(arena: Arena) -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "of no revision"
    time = f"virtual time, seed {arena.seed}" if arena.is_virtual else "real time"
    return f"{datetime.datetime.now(datetime.UTC).date()}, revision {revision}, in {time}."


def with_earlier(cells: Sequence[Cell], file: Path) -> list[Cell]:
    """These cells and those of earlier runs that have not run again, in the order of cases and peers."""
    earlier = [Cell(**cell) for cell in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []
    order = list(BY_NAME)
    of_all = {(cell.case, cell.server, cell.client): cell for cell in (*earlier, *cells) if cell.case in order}
    return sorted(of_all.values(), key=lambda cell: order.index(cell.case))


STYLE = """body{font:15px system-ui,sans-serif;margin:2em;color:#222}table{border-collapse:collapse}
td,th{border:1px solid #ccc;padding:.3em .6em;text-align:center}th:first-child{text-align:left}
.passed{background:#d8f0d8}.failed{background:#f6c8c8}.unsupported,.missing{background:#eee;color:#777}
small{color:#666;font-weight:normal}"""


def _html_cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    title = html.escape(cell.reason or cell.verdict)
    seconds = f"<br><small>{cell.seconds:.2f} s</small>" if cell.seconds is not None else ""
    return f'<td class="{cell.verdict}" title="{title}">{cell.sign()}{seconds}</td>'


def html_page(cells: Sequence[Cell], foreign: Sequence[Peer]) -> str:
    cases = list(dict.fromkeys(cell.case for cell in cells))
    head = "".join(f'<th colspan="2">{p.name}<br><small>{html.escape(p.version())}</small></th>' for p in foreign)
    sides = "<th>its client</th><th>its server</th>" * len(foreign)
    rows = []
    for case in cases:
        columns = "".join(
            _html_cell(_direction(cells, case, server, client))
            for peer in foreign
            for server, client in (("xlink", peer.name), (peer.name, "xlink"))
        )
        rows.append(f"<tr><th>{case}<br><small>{html.escape(BY_NAME[case].about)}</small></th>{columns}</tr>")
    failed = [c for c in cells if c.verdict == "failed"]
    notes = "".join(f"<li>{c.case}, {c.server} serves {c.client}: {html.escape(c.reason or '')}</li>" for c in failed)
    missing = {(p.name, p.missing()) for p in foreign if p.missing()}
    notes += "".join(f"<li>{name}: {html.escape(str(why))}</li>" for name, why in sorted(missing))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Interoperability</title><style>{STYLE}</style>'
        f"<h1>Interoperability</h1><p>✓ passed, ✗ failed, k/N passed k times of N, · not supported by one of the "
        f"two, — cannot run here.</p>"
        f"<table><tr><th></th>{head}</tr><tr><th></th>{sides}</tr>{''.join(rows)}</table><ul>{notes}</ul></html>\n"
    )


def unexplained(cells: Sequence[Cell]) -> list[Cell]:
    """Those that failed, at least half of the times if they depend on chance, and not by a known error of the peer."""
    failed = [c for c in cells if c.verdict == "failed" and 2 * (c.passed or 0) <= c.tries]
    return [c for c in failed if (c.case, c.server, c.client) not in DEFECTS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "interop")
    parser.add_argument("--peer", action="append", choices=[peer.name for peer in FOREIGN])
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--virtual", action="store_true", help="in virtual time, which needs no root but `make kernel`")
    parser.add_argument("--seed", type=int, default=1, help="of the relay's losses; in virtual time of everything")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time, for --virtual")
    parser.add_argument("--add", action="store_true", help="keep the cells of earlier runs that do not run again")
    parser.add_argument("--times", type=int, default=TIMES, metavar="N", help="tries of a cell that depends on chance")
    parser.add_argument(
        "--image", type=Path, metavar="DIR", help="root folder of our endpoint's image, which runs then"
    )
    parser.add_argument("--check", action="store_true", help="only refuse what is not known")
    arguments = parser.parse_args()
    if arguments.check:
        return 0
    foreign = [by_name(name) for name in arguments.peer] if arguments.peer else list(FOREIGN)
    cases = [BY_NAME[name] for name in arguments.case] if arguments.case else list(CASES)
    arguments.out.mkdir(parents=True, exist_ok=True)
    arena = Arena(arguments.virtual, arguments.seed, arguments.image)
    cells = run_matrix(
        foreign, cases, arguments.out, arena, arguments.jobs if arguments.virtual else 1, arguments.times
    )
    failed = unexplained(cells)
    data = arguments.out / "matrix.json"
    if arguments.add:
        cells = with_earlier(cells, data)
        foreign = [peer for peer in FOREIGN if any(peer.name in (cell.server, cell.client) for cell in cells)]
    data.write_text(json.dumps([asdict(cell) for cell in cells], indent=1), encoding="utf-8")
    (arguments.out / "matrix.html").write_text(html_page(cells, foreign), encoding="utf-8")
    (arguments.out / "matrix.md").write_text(markdown(cells, foreign, _about_run(arena)), encoding="utf-8")
    print(text_table(cells, foreign), end="")
    for cell in failed:
        print(f"failed, and no error of the peer that is known: {cell.case}, {cell.server} serves {cell.client}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
