"""Makes the list of runs of an experiment: looks up pairs, checks traces, and chooses start offsets."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import product
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.yamlfile import Location, YamlDocument, near_miss
from railyard.experiment.arenas import is_exact
from railyard.experiment.model import (
    Experiment,
    MeasuredScheme,
    PairChoice,
    Qlog,
    SchemeEntry,
)
from railyard.experiment.settings import FORESIGHT_SCHEDULERS
from railyard.experiment.stacks import StackRun, find_stack, resolve_stack
from railyard.run.arena import Arena, arena_of
from railyard.run.refused import refuse
from railyard.run.runspec import RunBottleneck, RunFlow, RunPath, RunSpec, primary_path, scheme_parameters
from railyard.traces.index import Pair, PairPath
from railyard.traces.library import at_hand, not_found
from railyard.traces.names import Technology
from railyard.traces.periods import told_of_runs
from railyard.traces.settings import layered, of_way, split_files, vias
from railyard.traces.stretches import worst_stretches
from railyard.traces.trace import Trace, read_trace, sha256_file

Mistake = Callable[[str], UserError]
"""Makes the error for a mistake in a line of the experiment's file."""
CELLULAR = "cellular"  # in `links`: all cellular paths of a pair
QLOGS_OF_ALL = 24  # runs in virtual time; with more, by default, only the worst ones keep qlogs


def look_up(choice: PairChoice, document: YamlDocument, location: Location) -> Pair:
    """The pair of a choice: the first of its names that the trace library has."""
    there = at_hand()
    if pair := there.first_of(choice.first_found):
        return pair
    raise document.error(location, not_found(choice.first_found, there))


def start_offsets_ms(
    experiment: Experiment, pair: str, paths: tuple[RunPath, ...], traces: list[Trace]
) -> dict[int, int] | None:
    """The start offset of each seed's runs in the traces, which is the same for every scheme.

    With 'drawn' and 'worst_of_primary' runs start at least the time limit before the end of the shortest trace, so that
    no trace wraps around and the paths stay aligned as recorded. If the trace is shorter than the limit, a draw is from
    all of it, and a stretch must end with it at the latest. None: there are fewer such stretches than seeds.
    """
    if isinstance(experiment.start_offset_ms, int):
        return dict.fromkeys(experiment.seeds, experiment.start_offset_ms)
    shortest = min(trace.period_ms for trace in traces)
    if experiment.start_offset_ms == "spread":
        return {seed: shortest * place // len(experiment.seeds) for place, seed in enumerate(experiment.seeds)}
    room = shortest - round(experiment.time_limit_s * 1000)
    if experiment.start_offset_ms == "worst_of_primary":
        length_ms = round(experiment.player.duration_s * 1000)
        primary = read_trace(primary_path(paths, experiment.path_order).down)
        last = room if room > 0 else max(0, shortest - length_ms)
        stretches = worst_stretches(primary, length_ms, len(experiment.seeds), last)
        if len(stretches) < len(experiment.seeds):
            return None
        return {seed: stretch.start_ms for seed, stretch in zip(experiment.seeds, stretches, strict=True)}
    return {
        seed: _draw(f"start offset {pair} {seed}") % max(1, room if room > 0 else shortest) for seed in experiment.seeds
    }


def _draw(label: str) -> int:
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "big")


def _path(path: PairPath, experiment: Experiment, folder: Path) -> tuple[RunPath, list[Trace]]:
    up, down = read_trace(path.uplink), read_trace(path.downlink)
    groups = ["all", *([CELLULAR] if path.is_cellular else []), path.name]
    own = reduce(layered, (experiment.links.get(name, {}) for name in groups))
    plain, files = split_files(own, folder)
    delay_traces = path.delay_traces | files
    run_path = RunPath(
        name=path.name,
        technology=path.technology,
        up=path.uplink,
        down=path.downlink,
        up_sha256=up.sha256,
        down_sha256=down.sha256,
        delay_ms=path.delay_ms,
        queue=experiment.queue or path.queue,
        settings=layered(path.settings, plain),
        delay_traces=delay_traces,
        delay_traces_sha256={name: sha256_file(file) for name, file in delay_traces.items()},
        kind=path.kind,
        resolution_ms=path.resolution_ms,
    )
    return run_path, [up, down]


def _check_names(pair: Pair, experiment: Experiment, document: YamlDocument) -> None:
    names = [path.name for path in pair.paths]
    for name in experiment.links:
        if name not in ("all", CELLULAR, *names):
            raise document.error(("links", name), f"{pair.name} has no path '{name}'; {near_miss(name, names)}")
    for name in experiment.bottlenecks:
        if name in names:
            raise document.error(("bottlenecks", name), f"a path of {pair.name} is called '{name}' too; rename it.")
    for place, event in enumerate(experiment.link_events):
        at = ("link_events", place, "path")
        if event.path not in (*names, *experiment.bottlenecks):
            raise document.error(at, f"{pair.name} has no path '{event.path}'; {near_miss(event.path, names)}")
        if event.path not in names and (event.nat or event.interface):
            raise document.error(at, f"'{event.path}' is a bottleneck, which has no NAT and no interface.")


def _check_files(experiment: Experiment, document: YamlDocument) -> None:
    for field in ("links", "bottlenecks"):
        for name, settings in getattr(experiment, field).items():
            for key, file in split_files(settings, document.path.parent)[1].items():
                if not file.is_file():
                    message = f"there is no file {file}; files are named relative to the experiment."
                    raise document.error((field, name, key), message)


def _paths(
    pair: Pair, experiment: Experiment, document: YamlDocument, mistake: Mistake
) -> tuple[tuple[RunPath, ...], list[Trace]]:
    _check_names(pair, experiment, document)
    paths = [_path(path, experiment, document.path.parent) for path in pair.paths]
    for name in (name for path, _ in paths for name in vias(path.settings)):
        if name not in experiment.bottlenecks:
            raise mistake(f"there is no bottleneck '{name}'; {near_miss(name, experiment.bottlenecks)}")
    _check_cross(experiment, [path for path, _ in paths], mistake)
    without_nat = {path.name for path, _ in paths if path.settings.get("nat", "off") == "off"}
    for event in experiment.link_events:
        if event.nat is not None and event.path in without_nat:
            raise mistake(f"'link_events' rebinds the NAT of '{event.path}', which has none; give it 'nat' in 'links'.")
    return tuple(path for path, _ in paths), [trace for _, traces in paths for trace in traces]


def _check_cross(experiment: Experiment, paths: Sequence[RunPath], mistake: Mistake) -> None:
    """Refuses others' traffic on a queue without a limit: that traffic never slows down, so the queue would grow
    forever."""
    links = {name: ("infinite", settings, settings) for name, settings in experiment.bottlenecks.items()}
    links |= {path.name: (path.queue, path.settings, path.settings | path.delay_traces) for path in paths}
    for name, (queue, settings, others) in links.items():
        for way in ("up", "down"):
            if of_way(settings, way, "queue", queue) != "infinite":
                continue
            given = [of_way(others, way, key, "off") for key in ("cross", "cross_profile")]
            events = [
                one.cross for one in experiment.link_events if one.path == name and one.direction in (way, "both")
            ]
            if any(cross not in (None, "off") for cross in (*given, *events)):
                raise mistake(f"others' traffic ('cross') on '{name}' needs a queue with a limit; give it 'queue'.")


def _bottlenecks(experiment: Experiment, folder: Path) -> tuple[RunBottleneck, ...]:
    bottlenecks = []
    for name, settings in experiment.bottlenecks.items():
        plain, files = split_files(settings, folder)
        hashes = {key: sha256_file(file) for key, file in files.items()}
        bottlenecks.append(RunBottleneck(name=name, settings=plain, files=files, files_sha256=hashes))
    return tuple(bottlenecks)


# `path` of scheme sp: as an application on a phone, and on every path, of which the better one is reported.
OS, BEST = "os", "best"
# Android's Media3 player: DefaultHttpDataSource.DEFAULT_READ_TIMEOUT_MILLIS.
OS_READ_TIMEOUT_MS = "8000"


def _placements(
    entry: SchemeEntry, paths: tuple[RunPath, ...], order: list[Technology], mistake: Mistake
) -> Iterator[tuple[str, str]]:
    """The label and the primary path of each run of a scheme. A single path scheme may have a run for each path."""
    primary, label = primary_path(paths, order).name, entry.base_label()
    names = [path.name for path in paths]
    if entry.scheme not in ("sp", "tcp") or entry.path == "primary":
        yield label, primary
    elif entry.scheme == "sp" and entry.path == OS:
        yield entry.label or f"{label}:{OS}", primary
    elif entry.scheme == "sp" and entry.path == BEST:
        for name in names:
            yield f"{entry.label or f'{label}:{BEST}'}:{name}", name
    elif entry.path == "each":
        yield label, primary
        for name in names:
            if name != primary:
                yield f"{label}:{name}", name
    elif entry.path in names:
        yield (label if entry.path == primary else f"{label}:{entry.path}"), entry.path
    else:
        raise mistake(f"this pair has no path '{entry.path}'; {near_miss(entry.path, names)}")


def _parameters(entry: SchemeEntry) -> dict[str, str]:
    """The parameters of a scheme. Single path on a given path measures that path, so it reconnects only there. As an
    application on a phone it leaves an interface that is silent."""
    if entry.scheme == "sp" and entry.path == OS:
        return {"leave_ms": OS_READ_TIMEOUT_MS} | scheme_parameters(entry)
    stays = entry.scheme == "sp" and entry.path != "primary"
    return ({"reconnect": "same"} if stays else {}) | scheme_parameters(entry)


def _caveat(pair: Pair, experiment: Experiment, traces: list[Trace], last_offset_ms: int) -> str:
    """Caveats about the pair for readers of the results: how it was recorded, and how its traces loop."""
    names = [f"{path.name} {way}" for path in pair.paths for way in ("up", "down")]
    periods = {name: trace.period_ms for name, trace in zip(names, traces, strict=True)}
    run_ms = experiment.player.duration_s * 1000
    end_ms = last_offset_ms + experiment.time_limit_s * 1000
    return " ".join([pair.caveat] * bool(pair.caveat) + told_of_runs(periods, run_ms, end_ms))


def warnings(specs: list[RunSpec]) -> list[str]:
    """A line for each pair with a caveat."""
    caveats = {spec.pair: spec.pair_caveat for spec in specs if spec.pair_caveat}
    return [f"{pair}: {caveat}" for pair, caveat in caveats.items()]


def _stack(entry: SchemeEntry, document: YamlDocument, location: Location) -> StackRun | None:
    """The stack of an entry. None: it has none. Errors name its line."""
    if entry.stack is None:
        return None
    try:
        return resolve_stack(entry.stack, entry.stack_options, document.path.parent)
    except UserError as error:
        raise document.error(location, str(error)) from None


def not_run(experiment: Experiment, document: YamlDocument) -> list[dict[str, str]]:
    """The rows of the experiment that its arena cannot run, with pair, label, scheme and reason."""
    rows: list[dict[str, str]] = []
    refused = {entry.scheme: arena_of(experiment.arena).refuses(entry.scheme) for entry in experiment.schemes}
    if not any(refused.values()):
        return rows
    for pair_index, choice in enumerate(experiment.pairs):
        pair = look_up(choice, document, ("pairs", pair_index))
        paths, _ = _paths(pair, experiment, document, partial(document.error, ("pairs", pair_index)))
        for scheme_index, entry in enumerate(experiment.schemes):
            if reason := refused[entry.scheme]:
                of_scheme = partial(document.error, ("schemes", scheme_index))
                for label, _ in _placements(entry, paths, experiment.path_order, of_scheme):
                    rows.append({"pair": pair.name, "label": label, "scheme": entry.scheme, "reason": reason})
    return rows


def qlog_of(experiment: Experiment, runs: int) -> Qlog:
    """Which runs keep qlogs: as the experiment says, else by the number of runs."""
    if experiment.qlog is not None:
        return experiment.qlog
    return "worst" if is_exact(experiment.arena) and runs > QLOGS_OF_ALL else "all"


def _flows(experiment: Experiment, document: YamlDocument) -> tuple[RunFlow, ...]:
    """The flows of the experiment. Refuses those that the arena cannot run. Errors name the line."""
    where = arena_of(experiment.arena)
    for name, flow in experiment.flows.items():
        if reason := where.refuses_flow(flow.cc):
            raise document.error(("flows", name), f"{reason}.")
        if name in experiment.bottlenecks:
            raise document.error(("flows", name), f"a bottleneck is called '{name}' too; rename one of the two.")
        for bottleneck in flow.via:
            if bottleneck not in experiment.bottlenecks:
                message = f"there is no bottleneck '{bottleneck}'; {near_miss(bottleneck, experiment.bottlenecks)}"
                raise document.error(("flows", name), message)
    return tuple(RunFlow(name=name, settings=flow) for name, flow in experiment.flows.items())


def _check_flows(experiment: Experiment, pair: Pair, paths: Sequence[RunPath], document: YamlDocument) -> None:
    names = [path.name for path in paths]
    for name, flow in experiment.flows.items():
        if flow.path is not None and flow.path not in names:
            message = f"{pair.name} has no path '{flow.path}'; {near_miss(flow.path, names)}"
            raise document.error(("flows", name, "path"), message)
        if name in names:
            raise document.error(("flows", name), f"a path of {pair.name} is called '{name}' too; rename it.")
    _check_flow_queues(experiment, paths, document)


def _check_flow_queues(experiment: Experiment, paths: Sequence[RunPath], document: YamlDocument) -> None:
    """Refuses flows over a queue without a limit: without loss, a flow fills it with all of its socket's buffer."""
    queues = {path.name: (path.queue, path.settings) for path in paths}
    queues |= {name: ("infinite", settings) for name, settings in experiment.bottlenecks.items()}
    for name, flow in experiment.flows.items():
        for link in [flow.path] if flow.path is not None else flow.via:
            queue, settings = queues[link]
            if of_way(settings, flow.direction, "queue", queue) == "infinite":
                message = f"it would fill '{link}', whose queue has no limit; give '{link}' a 'queue'."
                raise document.error(("flows", name), message)


def _refuse_foresight(experiment: Experiment, document: YamlDocument) -> None:
    where = arena_of(experiment.arena)
    for index, entry in enumerate(experiment.schemes):
        scheduler = getattr(entry, "scheduler", None)
        if scheduler in FORESIGHT_SCHEDULERS and not where.has_foresight:
            message = (
                f"the scheduler {scheduler} must know what the links will do, which only the arena sim does, "
                f"not {experiment.arena}; choose another one."
            )
            raise document.error(("schemes", index, "scheduler"), message)


def _refuse_unknown_stacks(experiment: Experiment, document: YamlDocument) -> None:
    """Refuses unknown stacks before anything else, in every arena."""
    for index, entry in enumerate(experiment.schemes):
        try:
            if entry.stack is not None:
                find_stack(entry.stack, document.path.parent)
        except UserError as error:
            raise document.error(("schemes", index), str(error)) from None


def _refuse_schemes(experiment: Experiment, document: YamlDocument, where: Arena) -> None:
    _refuse_unknown_stacks(experiment, document)
    if all(where.refuses(entry.scheme) for entry in experiment.schemes):
        message = f"none of these schemes can run in the {where.name} arena; run them with --arena kernel or mpshell."
        raise document.error(("schemes",), message)
    for index, entry in enumerate(experiment.schemes):
        if entry.thresholds is not None and not isinstance(entry, MeasuredScheme):
            message = "thresholds in percent are measured by `railyard run`; give t_th1_ms and t_th2_ms here."
            raise document.error(("schemes", index, "thresholds"), message)
    _refuse_foresight(experiment, document)


def resolve(
    experiment: Experiment, document: YamlDocument, programs: dict[str, str] | None = None, *, dry_run: bool = False
) -> list[RunSpec]:
    """All runs that the experiment's arena can do, seed by seed, so that the schemes of a seed run close in time.
    `programs`: the SHA-256 of each program of the runs. None: those of this installation. `dry_run`: the runs are only
    counted, so they need no kernel if theirs is not built."""
    where = arena_of(experiment.arena)
    _refuse_schemes(experiment, document, where)
    _check_files(experiment, document)
    if programs is None:
        programs = where.programs()
    stacks = [_stack(entry, document, ("schemes", index)) for index, entry in enumerate(experiment.schemes)]
    alike = partial(
        RunSpec,
        experiment=experiment.name,
        arena=experiment.arena,
        player=experiment.player,
        time_limit_s=experiment.time_limit_s,
        buffers=experiment.buffers,
        qlog=False,
        link_logs=experiment.link_logs,
        pcap=experiment.pcap,
        link_events=tuple(experiment.link_events),
        keep_awake=experiment.keep_awake,
        real_time=experiment.real_time,
        programs_sha256=programs,
        kernel=None if dry_run and where.look() else where.machine(),
        bottlenecks=_bottlenecks(experiment, document.path.parent),
        flows=_flows(experiment, document),
    )
    specs: list[RunSpec] = []
    for pair_index, choice in enumerate(experiment.pairs):
        pair = look_up(choice, document, ("pairs", pair_index))
        of_pair = partial(document.error, ("pairs", pair_index))
        paths, traces = _paths(pair, experiment, document, of_pair)
        _check_flows(experiment, pair, paths, document)
        offsets = start_offsets_ms(experiment, pair.name, paths, traces)
        if offsets is None:
            message = (
                f"the traces of {pair.name} have not so many stretches of {experiment.player.duration_s:g} s "
                "beside each other; take fewer seeds or a shorter video."
            )
            raise document.error(("seeds",), message)
        caveat = _caveat(pair, experiment, traces, max(offsets.values()))
        for seed, (scheme_index, entry) in product(experiment.seeds, enumerate(experiment.schemes)):
            if where.refuses(entry.scheme):
                continue
            of_scheme = partial(document.error, ("schemes", scheme_index))
            specs += [
                alike(
                    pair=pair.name,
                    pair_caveat=caveat,
                    label=label,
                    scheme=entry.scheme,
                    primary=primary,
                    parameters=_parameters(entry),
                    congestion=entry.cc or experiment.congestion,
                    paths=paths,
                    seed=seed,
                    start_offset_ms=offsets[seed],
                    stack=stacks[scheme_index],
                    kernel_sysctls=dict(entry.sysctls),
                    mptcp_limits=entry.limits(),
                    thresholds=entry.measured if isinstance(entry, MeasuredScheme) else None,
                )
                for label, primary in _placements(entry, paths, experiment.path_order, of_scheme)
            ]
    qlog = qlog_of(experiment, len(specs))
    if qlog == "all" or (qlog == "worst" and not specs[0].is_same_with_qlogs):
        specs = [spec.model_copy(update={"qlog": True}) for spec in specs]
    _refuse_same_names(specs, document)
    refuse(experiment, document, specs)
    return specs


def _refuse_same_names(specs: list[RunSpec], document: YamlDocument) -> None:
    seen: set[str] = set()
    for spec in specs:
        if spec.run_id in seen:
            message = (
                f"two runs are both called {spec.run_id}: of pair and label a run's name has only ASCII letters, "
                "digits and . _ = -; give one scheme a 'label' that differs in them."
            )
            raise document.error(("schemes",), message)
        seen.add(spec.run_id)
