"""Values with units in experiments, `railyard run --set` and `--pair`, and two campaigns compared."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conftest import good, one_sentence
from in_process import railyard
from railyard.base.paths import ROOT
from railyard.base.units import bare, size_in_words, value_in, with_units
from railyard.base.yamlfile import FieldError
from railyard.experiment.model import load_experiment

YAML = """\
name: unit
arena: sim
pairs: [subway-1]
schemes: [sp, {scheme: xlink, t_th1_ms: 0.5s, t_th2_ms: 900ms}]
seeds: 2
player: {bitrate: 2mbps, duration: 2s, chunk_bytes: 64KiB, max_buffer: 5s}
links: {all: {delay_ms: 20ms}}
time_limit: 0.5min
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "unit.yaml"
    found.write_text(YAML)
    return found


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("bitrate_bps", "8mbps", 8_000_000),
        ("bitrate_bps", "1.5 Gbps", 1_500_000_000),
        ("duration_s", "250ms", 0.25),
        ("duration_s", "2min", 120),
        ("max_buffer_ms", "1.5s", 1500),
        ("delay_ms", "50us", 0.05),
        ("chunk_bytes", "512KiB", 524_288),
        ("chunk_bytes", "2MB", 2_000_000),
        ("chunk_bytes", 5, 5),
        ("scheme", "8mbps", "8mbps"),
        ("bitrate_bps", "fast", "fast"),
    ],
)
def test_a_value_with_a_unit_is_a_number_in_the_fields_unit(field: str, text: object, value: object) -> None:
    assert value_in(field, text) == value and type(value_in(field, text)) is type(value)


@pytest.mark.parametrize("words", ["512 KiB", "1024 KiB", "1 MB", "250 kB", "1500 B", "0 KiB"])
def test_a_size_is_printed_as_a_field_takes_it(words: str) -> None:
    assert size_in_words(value_in("chunk_bytes", words)) == words


@pytest.mark.parametrize(("field", "text"), [("bitrate_bps", "8MB"), ("bitrate_bps", "8MBps"), ("duration_s", "3KiB")])
def test_a_unit_of_something_else_is_refused(field: str, text: str) -> None:
    with pytest.raises(FieldError, match="has none of its units"):
        value_in(field, text)


def test_a_name_without_its_unit_stands_for_the_field_once() -> None:
    assert with_units({"bitrate": "8mbps"}, ("bitrate_bps",)) == {"bitrate_bps": 8_000_000}
    with pytest.raises(FieldError, match=r"8 has no unit; give one of bps, .* or name the field bitrate_bps"):
        with_units({"bitrate": 8}, ("bitrate_bps",))
    assert bare("bitrate_bps") == "bitrate" and bare("verify") == "verify"
    for data in ({"bitrate": "8mbps", "bitrate_bps": 1}, {"bitrate_bps": 1, "bitrate": "8mbps"}):
        with pytest.raises(FieldError, match="is given as well"):
            with_units(data, ("bitrate_bps",))


def test_an_experiment_takes_units_everywhere(file: Path) -> None:
    found, document = load_experiment(file)
    player = found.player
    assert (player.bitrate_bps, player.duration_s, player.chunk_bytes, player.max_buffer_ms) == (
        *(2_000_000, 2, 65_536),
        5000,
    )
    assert found.time_limit_s == 30 and found.links["all"] == {"delay_ms": 20}
    assert found.schemes[1].quic_parameters() == {"t_th1_ms": 500, "t_th2_ms": 900}
    schema = json.loads((ROOT / "docs" / "reference" / "experiment.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document.data)


def test_a_wrong_unit_is_named_with_its_line(file: Path) -> None:
    file.write_text(YAML.replace("duration: 2s", "duration: 2mbps"))
    one_sentence(railyard("run", str(file), "--dry-run"), f"{file}:6: player.duration", "none of its units")


def settings_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "campaign.json").read_text())["experiment"]
    return found


def test_set_changes_fields_of_a_file(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--set", "player.bitrate_bps=4mbps", "--set", "schemes.1={scheme: cm}", "--set", "queue=codel")
    good(railyard("run", str(file), "--out", str(out), "--seeds", "1", *words))
    found = settings_of(out)
    assert found["player"]["bitrate_bps"] == 4_000_000 and found["queue"] == "codel"
    assert [entry["scheme"] for entry in found["schemes"]] == ["sp", "cm"]


def test_without_a_file_pair_schemes_and_set_are_the_experiment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--pair", "subway-1", "--schemes", "sp,vanilla-mp", "--set", "player={bitrate: 2mbps, duration: 2s}")
    good(railyard("run", *words, "--out", str(out)))
    found = settings_of(out)
    assert (found["name"], found["arena"], found["seeds"]) == ("subway-1", "sim", [1])
    assert (found["player"]["bitrate_bps"], found["player"]["duration_s"]) == (2_000_000, 2)
    assert len(list((out / "runs").iterdir())) == 3  # sp on each path


def test_all_schemes_are_those_that_the_arena_has() -> None:
    done = railyard("run", "--pair", "subway-1", "--schemes", "all", "--dry-run")
    assert done.returncode == 0 and "8 schemes" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name an experiment, or with --pair what to play"),
        (("smoke", "--set", "player"), "--set takes FIELD=VALUE"),
        (("smoke", "--set", "player..fps=3"), "--set takes FIELD=VALUE"),
        (("smoke", "--set", "player.fps=[1"), "this is not valid YAML"),
        (("smoke", "--set", "player.bitrat=8mbps"), "unknown field; did you mean 'bitrate_bps'"),
        (("smoke", "--set", "schemes.9=sp"), "'9' is no place in a list"),
        (("smoke", "--set", "name.x=sp"), "'name' is the value"),
        (("smoke", "--schemes", "xlunk"), "unknown scheme 'xlunk'"),
        (("--pair", "subwai-1"), "there is no trace pair 'subwai-1'"),
        (("fig6", "--set", "player.fps=3"), "--pair, --schemes and --set are for comparisons"),
    ],
)
def test_what_cannot_be_set_ends_in_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    one_sentence(railyard("run", *words), sentence)


def test_two_campaigns_are_compared_scheme_by_scheme_at_common_places(file: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "slow", tmp_path / "fast"
    assert railyard("run", str(file), "--out", str(first), "--seeds", "6").returncode == 0
    more = ("--set", "links.all.delay_ms=200")
    assert railyard("run", str(file), "--out", str(second), "--seeds", "5", *more).returncode == 0
    done = good(railyard("compare", str(second), str(first), "--format", "json"))
    rows = {(row["scheme"], row["against"], row["figure"]): row for row in json.loads(done.stdout)}
    label = "xlink,t_th1_ms=500,t_th2_ms=900"
    found = rows[f"{label} (fast)", f"{label} (slow)", "rct_median"]
    assert found["plays"] == 5 and found["difference"] > 0.5
    assert {one[0].rpartition(" ")[2] for one in rows} == {"(fast)"} and len({one[0] for one in rows}) == 3
    told = railyard("compare", str(second), str(first)).stdout
    assert "3 runs without a counterpart" in told and "links.all.delay_ms 200, 20" in told


def test_campaigns_without_a_common_place_are_not_compared(file: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    assert railyard("run", str(file), "--out", str(first)).returncode == 0
    elsewhere = ("--set", "start_offset_ms=7000")
    assert railyard("run", str(file), "--out", str(second), *elsewhere).returncode == 0
    one_sentence(railyard("compare", str(first), str(second)), "they play other traces or start elsewhere")
    assert "are the same campaign" in railyard("compare", str(first), str(first)).stderr
