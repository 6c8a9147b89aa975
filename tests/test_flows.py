"""TCP flows of the kernel as others' traffic: in the kernel arena, and in an experiment's YAML."""

import json
from pathlib import Path

import pytest

from conftest import good, run_program
from in_process import railyard
from kernel_machine import needs_kernel, same_files, vk
from mpshell_program import MPSHELL
from railyard.arenas.docker import ARENA as DOCKER
from railyard.arenas.sim import ARENA as SIM
from railyard.base.errors import UserError
from railyard.experiment.model import Experiment, FlowSettings, load_experiment
from railyard.results.flows import Connection, read_flows
from railyard.run import vkernel
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec, mpshell_command
from two_flows import CORE_BPS, LINKS, TWO, shares

YAML = """\
name: beside
arena: kernel
pairs: [subway-1]
schemes: [vanilla-mp, mptcp]
start_offset_ms: 0
player: {duration_s: 4, bitrate_bps: 500000, chunk_bytes: 131072}
time_limit_s: 40
bottlenecks:
  core: {rate: 6mbps, delay: 5ms, queue: "droptail:packets=20"}
links:
  all: {via: [core]}
flows:
  bulk: {cc: bbr, count: 2, via: [core], delay: 15ms, to: 90s}
  web: {path: wifi, size: 50kB, pause: 300ms, from: 0.5s}
"""


@needs_kernel
def test_two_cubic_flows_share_a_bottleneck_in_the_kernel(tmp_path: Path) -> None:
    good(vk(tmp_path, "--seed", "1", "--", str(MPSHELL), *LINKS, *TWO, "--", "sleep", "30"))
    first, second = shares(tmp_path, 3, 30)
    assert 0.8 < first / second < 1.25
    assert first + second == pytest.approx(CORE_BPS, rel=0.03)


@needs_kernel
def test_a_load_whose_path_never_comes_back_fails_and_is_counted(tmp_path: Path) -> None:
    ctl = MPSHELL.parent / "mpshell-ctl"
    words = ["--path", "a:rate=100kbps,delay=5", "--flow", "load:path=a,direction=up,size=60000,pause=0"]
    words += ["--sysctl", "net.ipv4.tcp_wmem=4096 262144 262144"]  # so the sender has written all by then
    words += ["--sysctl", "net.ipv4.tcp_retries2=2", "--sysctl", "net.ipv4.tcp_syn_retries=1", "--summary", "s.json"]
    words += ["--control", "/run/control", "--flow-log", "flows.jsonl"]
    good(vk(tmp_path, "--", str(MPSHELL), *words, "--", "sh", "-c", f"sleep 1; {ctl} /run/control down a; sleep 40"))
    (load,) = read_flows(tmp_path)["load"]
    first, *others = load.transfers
    assert first.failed == "Connection timed out"
    assert 0 < first.received_bytes < 60_000
    assert first.ended_s < 30
    assert [one.received_bytes for one in others] == [0] * len(others)
    (flow,) = json.loads((tmp_path / "s.json").read_text())["flows"]
    assert flow["failures"] == sum(one.failed is not None for one in load.transfers) > 1
    assert len((tmp_path / "flows.jsonl").read_text().splitlines()) < 1000  # no loop over an error


def specs(folder: Path, text: str) -> list[RunSpec]:
    (folder / "beside.yaml").write_text(text)
    return resolve(*load_experiment(folder / "beside.yaml"))


@needs_kernel
def test_flows_of_an_experiment_are_in_its_results(tmp_path: Path) -> None:
    (tmp_path / "beside.yaml").write_text(YAML.replace("to: 90s", "to: 3s").replace("6mbps", "3mbps"))
    good(railyard("run", str(tmp_path / "beside.yaml"), "--out", str(tmp_path / "out")))
    for name in ("vanilla-mp", "mptcp"):
        folder = tmp_path / "out" / "runs" / f"subway-1--{name}--s1"
        record = json.loads((folder / "run.json").read_text())
        assert record["outcome"] == "complete"
        assert not record["fidelity"]["void"], record["fidelity"]["reasons"]
        assert [flow["name"] for flow in record["config"]["flows"]] == ["bulk", "web"]
        flows = read_flows(folder)
        assert [len(flows[flow]) for flow in ("bulk", "web")] == [2, 1]
        assert all(one.received_bytes[-1] > 50_000 for one in flows["bulk"])
        assert {one.received_bytes for one in flows["web"][0].transfers[:-1]} <= {50_000}
    good(railyard("repeat", str(folder), "--yes", "--out", str(tmp_path / "again")))
    assert same_files(folder, tmp_path / "again") == ["run.json"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("via: [core], ", "", "a flow needs 'path: NAME' or 'via: [NAMES]', one of the two"),
        ("via: [core], ", "via: [core], path: wifi, ", "a flow needs 'path: NAME' or 'via: [NAMES]', one of the two"),
        ("via: [core], delay", "via: [cor], delay", "there is no bottleneck 'cor'"),
        ("path: wifi", "path: wify", "flows.web.path: subway-1 has no path 'wify'; did you mean 'wifi'?"),
        ("path: wifi", "path: wifi, rate: 5mbps", "'rate' is of a link of its own"),
        ("size: 50kB, ", "", "'pause_ms' needs 'size_bytes'"),
        ("to: 90s", "from: 95s, to: 90s", "it ends at 90 s, and begins at 95 s"),
        ("to: 90s", "from: 90.0001s, to: 90.0002s", "it ends at 90.0002 s, and begins at 90.0001 s"),
        ("via: [core], delay", "via: [core], rate: 0mbps, delay", "'0mbps' is no rate; give one above 0"),
        ("bulk:", "Bulk:", "at most 15 of a-z, 0-9 and '-', no '-' first, not 'Bulk'"),
        ("bulk:", "all:", "'all' is a name that the kernel uses itself"),
        ("bulk:", "core:", "a bottleneck is called 'core' too"),
        ("bulk:", "lte:", "flows.lte: a path of subway-1 is called 'lte' too"),
        ("count: 2", "count: 65", "flows.bulk.count"),
        (', queue: "droptail:packets=20"', "", "flows.bulk: it would fill 'core', whose queue has no limit"),
        ("arena: kernel", "arena: sim", "the sim arena has no TCP flows; run them with --arena kernel or mpshell"),
        ("bulk: {cc: bbr", "bulk: {cc: no_such", "no congestion controller 'no_such', but "),
    ],
)
def test_wrong_flows_are_refused_before_any_run(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    text = YAML.replace(old, new).replace("schemes: [vanilla-mp, mptcp]", "schemes: [vanilla-mp]")
    if "arena" not in old:
        text = text.replace("arena: kernel", "arena: mpshell")
    assert text != YAML
    with pytest.raises(UserError) as refused:
        specs(tmp_path, text)
    assert sentence in str(refused.value)
    assert "beside.yaml" in str(refused.value)


@needs_kernel
def test_the_kernel_of_the_arena_has_the_controllers_that_its_options_name(tmp_path: Path) -> None:
    kernel = vkernel.at_hand()
    assert kernel is not None
    assert {"bbr", "cubic", "reno"} <= set(vkernel.controllers(kernel))
    with pytest.raises(UserError, match="the kernel of this arena has no congestion controller 'vegas', but bbr, "):
        specs(tmp_path, YAML.replace("cc: bbr", "cc: vegas"))


def test_without_flows_records_and_commands_are_those_of_before(tmp_path: Path) -> None:
    """A member that was always there would make other campaigns of all experiments."""
    text = YAML[: YAML.index("flows:")].replace("arena: kernel", "arena: sim").replace(", mptcp", "")
    (spec,) = specs(tmp_path, text)
    assert "flows" not in spec.model_dump(mode="json")
    assert "flows" not in json.loads(spec.model_dump_json())
    assert "flows" not in load_experiment(tmp_path / "beside.yaml")[0].model_dump(mode="json")
    assert not [word for word in mpshell_command(spec, Path("mpshell"), tmp_path, ["true"]) if "--flow" in word]
    assert SIM.refuses_flow("cubic") == "the sim arena has no TCP flows; run them with --arena kernel or mpshell"
    assert DOCKER.refuses_flow("cubic") is not None


def test_settings_become_keys_of_mpshell_that_it_takes() -> None:
    settings = FlowSettings.model_validate(
        {
            "cc": "newreno",
            "via": ["core"],
            "rate": "20mbps",
            "delay": "2.5ms",
            "from": "1234.567s",
            "to": "2h",
            "size": "1MB",
            "pause": "0.5s",
            "direction": "up",
        }
    )
    assert settings.keys() == (
        "cc=newreno,via=core,rate=20mbps,delay=2.5,direction=up,count=1,from=1234.567,to=7200,size=1000000,pause=500"
    )
    words = ["--path", "a:rate=9mbps,delay=5", "--bottleneck", "core:rate=9mbps", "--flow", f"f:{settings.keys()}"]
    done = run_program([MPSHELL, *words, "--lend-outside", "x"])
    assert "--lend-outside takes no --path" in done.stderr  # so it had read the flow


def test_bytes_between_samples_are_in_proportion() -> None:
    connection = Connection([1.0, 2.0], [100, 300])
    assert [connection.bytes_at(t) for t in (0, 0.5, 1, 1.5, 2, 9)] == [0, 50, 100, 200, 300, 300]
    assert connection.goodput_bps(1, 2) == 1600


def test_each_setting_of_a_flow_is_a_key_of_mpshell() -> None:
    """The rows of emulator/mpshell/flow_options.c, and those of the model."""
    source = (Path(__file__).parents[1] / "emulator" / "mpshell" / "flow_options.c").read_text()
    rows = source[source.index("mp_flow_rows[]") : source.index("{0},")]
    names = {name.removesuffix("_s").removesuffix("_ms").removesuffix("_bytes") for name in FlowSettings.model_fields}
    assert {line.split('"')[1] for line in rows.splitlines() if line.startswith('    {"')} == names
    assert Experiment.model_fields["flows"].is_required() is False
