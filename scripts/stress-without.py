"""Removes mechanisms from libxlink, one at a time, and runs the scenarios that test them, with and without. Prints a
Markdown table; exit code 1 if a verdict is not the recorded one: pass with the mechanism, fail without it, except in
the scenarios that `passes` names. A mechanism is removed by a setting, or by a change of one place in a copy of the
last commit, which is built in its own folder and removed afterwards.
`make test PART=stress` runs this.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Mechanism:
    """A mechanism. `without`: the scheme that lacks it. None: a change of `file` removes it. `passes`: scenarios that
    pass without it, too."""

    words: str
    scenarios: str
    scheme: str
    without: str | None = None
    file: str = ""
    old: str = ""
    new: str = ""
    passes: str = ""

    def is_recorded(self, having: dict[str, object], lacking: dict[str, object]) -> bool:
        passes = str(having["scenario"])[:2] in self.passes.split()
        return (having["verdict"], lacking["verdict"]) == ("pass", "pass" if passes else "fail")


def change(words: str, scenarios: str, file: str, old: str, new: str) -> Mechanism:
    return Mechanism(words, scenarios, "vanilla-mp", file=f"transport/{file}", old=old, new=new)


MECHANISMS = (
    Mechanism("suspect paths", "01 02 05 06 19 22 23", "vanilla-mp", "vanilla-mp-2021"),
    Mechanism("suspect paths, beside copies", "21", "xlink-lean", "xlink", passes="21"),
    Mechanism("re-injection", "03 24", "xlink-lean", "xlink-lean,reinjection=none"),
    Mechanism("a handshake on the next path", "16", "vanilla-mp", "vanilla-mp,reconnect=off"),
    Mechanism("a path that is not named first", "08", "vanilla-mp", "sp"),
    change(
        "data on all paths", "09 15 26", "connection/transmit.c",
        "if (!xl_path_may_carry_data(p) || !p->cids", "if (p->index > 0 || !xl_path_may_carry_data(p) || !p->cids",
    ),
    change(
        "acknowledgements on the path of their packets", "04", "connection/content.c",
        "if (c->config->scheme.ack_path == XL_ACK_ORIGINAL || !c->multipath)\n        return p;",
        "if (c->config->scheme.ack_path == XL_ACK_ORIGINAL || !c->multipath)\n        return c->path[0];",
    ),
    change(
        "probe timeouts", "07", "connection/acks.c",
        "    p->flight.pto_count++;\n    p->stats.pto_count++;",
        "    p->flight.last_eliciting_at = c->now;\n    return;",
    ),
    change(
        "new connection IDs in place of those that were used", "17", "connection/own_cids.c",
        "while (xl_cids_active(cids) < wanted", "while (cids->next_sequence < wanted",
    ),
    change(
        "a path follows its NAT", "11 12", "connection/paths.c",
        "    if (moved && (c->multipath ||", "    if (moved && false && (c->multipath ||",
    ),
    change(
        "data of an abandoned path on others", "13", "connection/paths.c",
        "    xl_conn_give_up_in_flight(c, p);\n    xl_conn_path_set_state(c, p, XL_PATH_CLOSED, why);",
        "    xl_conn_path_set_state(c, p, XL_PATH_CLOSED, why);",
    ),
    change(
        "a search for the MTU of a path", "14", "path/mtu.c",
        "{.base = base, .most = most, .size = base}", "{.base = most, .most = most, .size = most}",
    ),
    change(
        "loss detection by later packets", "18", "connection/acks.c",
        "space->loss_time = xl_ledger_detect_lost(&space->ledger, c->now, delay, on_packet_lost, m);",
        "(void)delay, (void)on_packet_lost, space->loss_time = XL_NEVER;",
    ),
)  # fmt: skip


def stress(scenarios: list[str], scheme: str, place: Path, programs: Path) -> list[dict[str, object]]:
    """The cells of the scenarios. A failed scenario is no error."""
    out = place.with_suffix(".json")
    command = [sys.executable, "-m", "railyard", "stress", *scenarios, "--scheme", scheme]
    command += ["--out", str(place), "--json", str(out)]
    environment = os.environ | {"RAILYARD_BIN": str(programs)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not out.is_file():
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    cells: list[dict[str, object]] = json.loads(out.read_text())["cells"]
    return cells


def built_without(one: Mechanism, tree: Path, programs: Path) -> Path:
    """A copy of the programs, with a simulator whose transport lacks the mechanism."""
    file = tree / one.file
    text = file.read_text()
    if text.count(one.old) != 1:
        sys.exit(f"{one.file}: the place of '{one.words}' is not there once; write it anew in {__file__}.")
    file.write_text(text.replace(one.old, one.new))
    make = ["make", "-j2", "FAST_LINK=1", "WARN=-Werror=incompatible-pointer-types", "build/bin/xlink-sim"]
    subprocess.run(make, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    file.write_text(text)
    copy = tree / "without"
    shutil.copytree(programs, copy, dirs_exist_ok=True)
    shutil.copy2(tree / "build/bin/xlink-sim", copy)
    return copy


def why(cell: dict[str, object]) -> str:
    judged = cell["predicates"]
    assert isinstance(judged, list)  # noqa: S101
    return "; ".join(one["words"] for one in judged if not one["passed"]) or "passes"


def main() -> None:
    programs, changed = ROOT / "build/bin", []
    print("| scenario | mechanism | with it | without it |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        place, tree = Path(folder), Path(folder) / "tree"
        tree.mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        for number, one in enumerate(MECHANISMS):
            names = one.scenarios.split()
            having = stress(names, one.scheme, place / f"{number}-with", programs)
            other = programs if one.without else built_without(one, tree, programs)
            lacking = stress(names, one.without or one.scheme, place / f"{number}-without", other)
            for a, b in zip(having, lacking, strict=True):
                if not one.is_recorded(a, b):
                    changed.append(f"{a['scenario']} ({one.words})")
                how = f"{one.words} (`{one.without}`)" if one.without else f"{one.words} (`{one.file}`)"
                row = (a["scenario"], how, f"`{one.scheme}` {a['verdict']}", why(b))
                print(f"| {' | '.join(map(str, row))} |", flush=True)
    if changed:
        sys.exit(f"these verdicts are not the recorded ones: {', '.join(changed)}.")


if __name__ == "__main__":
    main()
