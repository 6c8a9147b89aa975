"""Each file that a program reads, with small or large mistakes: it runs, or ends with one sentence and exit code 2."""

import json
import os
import random
import re
import signal
import subprocess
import zlib
from pathlib import Path

import pytest

from railyard.base.paths import programs_dir

BIN = programs_dir()
pytestmark = pytest.mark.usefixtures("built")

JOB = """\
{"schema": 1, "seed": 1, "start_offset_ms": 0, "time_limit_s": 2, "scheme": "xlink", "primary": "wifi",
 "t_th1_ms": 500, "t_th2_ms": 2000, "reinjection": "frame", "ack_path": "original", "scheduler": "xlink", "cc": "bbr",
 "max_reinjections": 1, "copy_rule": "pays", "qoe": "ack", "qoe_control": "on", "send_buffer_bytes": 4194304,
 "path_events": "0.5:remove:lte,0.8:add:lte", "path_management": "on", "path_order": "wifi,lte", "link_logs": true,
 "paths": [
  {"name": "wifi", "technology": "wifi", "up": "up.trace", "down": "up.trace", "delay_ms": 15,
   "queue": "droptail:packets=100", "loss": 0, "jitter_ms": 1},
  {"name": "lte", "up": "12mbps", "down": "up.trace", "delay_trace": "delay.trace", "queue": "codel",
   "loss": "ge:p=0.01:r=0.5"}],
 "player": {"video_bytes": 100000, "bitrate_bps": 2500000, "chunk_bytes": 50000, "fps": 30, "rebuffer_target_ms": 500},
 "players": [{}, {"start_s": 0.2, "own_links": true, "scheme": "vanilla-mp", "player": {"concurrency": 2}}]}
"""
CONFIG = """\
paths:
  - name: wifi
    up: 12mbps
    down: 1mbps
    delay: 15
    queue: droptail:packets=100
    loss: 0.01
  - {name: lte, up: 1mbps, down: 2mbps, delay-trace: delay.trace, delay-trace-end: hold, queue: pie,
     onoff: "exp:on=1000:off=100"}
seed: 4
start-offset: 100
"""
BALANCER = """\
# two generations
secret: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F
configs:
- rotation: 2 # now
  server_id_bytes: 2
  nonce_bytes: 6
  key: 8f95f09245765f80256934e50c66207f
  encode_length: true
servers:
  a001: {address: 127.0.0.1:4433}
  A002: {address: "[::1]:443", drain: true}
"""
FRAME_INDEX = (
    '{"/a.mp4": [{"offset": 0, "size": 1234},\n {"offset": 1234, "size": 99}], "/b": [{"offset": 0, "size": 5}]}'
)
TRACE = "".join(f"{ms}\n" for ms in range(1, 50))
DELAY_TRACE = "0,10\n100,20\n300,5\n"
GOOD = {
    "job.json": JOB,
    "up.trace": TRACE,
    "delay.trace": DELAY_TRACE,
    "mpshell.yaml": CONFIG,
    "lb.yaml": BALANCER,
    "frames.json": FRAME_INDEX,
}
PROGRAM = {
    "job.json": ["xlink-sim", "job.json", "--out", "out"],
    "up.trace": ["xlink-sim", "job.json", "--out", "out"],
    "delay.trace": ["xlink-sim", "job.json", "--out", "out"],
    "mpshell.yaml": ["mpshell", "--config", "mpshell.yaml", "--summary", "/dev/null", "--", "true"],
    "lb.yaml": ["xlink-balancer", "--listen", "127.0.0.1:0", "--lb-config", "lb.yaml"],
    "frames.json": ["xlink-server", "--http1", "127.0.0.1:0", "--frame-index", "frames.json"],
}
NUMBERS = '0 -1 1 2 255 256 1e3 1e308 1e999 -0 0.5 NaN inf 4294967296 9223372036854775808 18446744073709551616 0x10 ""'
PIECES = [*':,=[]{}"\n\t\0#-*&é', "\r\n", "null", "true", "yes", "codel:target=0", "ge:p=1", "0mbps", "%n%s", "A" * 300]


def mutated(dice: random.Random, text: str) -> bytes:
    data = text.encode()
    for _ in range(dice.choice([1, 1, 1, 2, 3, 8])):
        at = dice.randrange(len(data) + 1)
        end = at + dice.randrange(1, 40)
        kind = dice.randrange(7)
        words = list(re.finditer(rb"[A-Za-z_]{2,}", data))
        numbers = list(re.finditer(rb"\d+(\.\d+)?", data))
        if kind == 0 and data:
            flipped = data[at - 1] ^ 1 << dice.randrange(8)
            data = data[: at - 1] + bytes([flipped]) + data[at:] if at else data
        elif kind == 1:
            data = data[:at] + dice.choice(PIECES).encode() + data[at:]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3:
            data = data[:at] + data[at:end] + data[at:]
        elif kind == 4 and numbers:
            number = dice.choice(numbers)
            data = data[: number.start()] + dice.choice(NUMBERS.split()).encode() + data[number.end() :]
        elif kind == 5 and words:
            word, other = dice.choice(words), dice.choice(words)
            data = data[: word.start()] + other.group() + data[word.end() :]
        elif kind == 6 and dice.random() < 0.3:
            data = data[:at]
    return data


def run(name: str, folder: Path) -> tuple[int, str]:
    """A server that comes up is ended; its exit code counts as any other program's."""
    command = [str(BIN / PROGRAM[name][0]), *PROGRAM[name][1:]]
    program = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with program:
        assert program.stdout is not None and program.stderr is not None
        try:
            if name in ("lb.yaml", "frames.json") and program.stdout.readline():
                program.send_signal(signal.SIGTERM)
            _, errors = program.communicate(timeout=60)
        except BaseException:
            program.kill()
            raise
    return program.returncode, errors


@pytest.mark.parametrize("name", GOOD)
def test_the_files_that_are_changed_are_good(name: str, tmp_path: Path) -> None:
    if name == "mpshell.yaml" and os.geteuid() != 0:
        pytest.skip("mpshell needs root to start")
    for file, text in GOOD.items():
        (tmp_path / file).write_text(text)
    assert run(name, tmp_path)[0] == 0


def test_what_is_quoted_of_a_file_keeps_to_its_line(tmp_path: Path) -> None:
    (tmp_path / "mpshell.yaml").write_text('paths: [{name: wifi, "up\\n\\e[2J": 12mbps}]\n')
    (tmp_path / "lb.yaml").write_text('"col\\e[2Jour\u00ee": red\n')
    assert 'path wifi: "up??[2J" is not one of' in run("mpshell.yaml", tmp_path)[1]
    assert "line 1: 'col?[2Jour??' is not known" in run("lb.yaml", tmp_path)[1]


def one_sentence(program: str, lines: list[str]) -> bool:
    """One, or one of each player where all of them have no connection."""
    players = [f"{program}: player {number}: " for number in range(1, len(lines) + 1)]
    return (
        lines[0].startswith(f"{program}: ")
        if len(lines) == 1
        else all(line.startswith(of_player) for line, of_player in zip(lines, players, strict=True))
    )


def check(name: str, folder: Path, count: int) -> None:
    dice = random.Random(zlib.crc32(name.encode()))
    refused = 0
    for i in range(count):
        for file, text in GOOD.items():
            (folder / file).write_text(text)
        (folder / name).write_bytes(mutated(dice, GOOD[name]))
        code, errors = run(name, folder)
        what = f"case {i} of {name}: exit code {code}, {errors!r}"
        assert code in (0, 1, 2), what
        refused += code == 2
        if code == 2:
            assert errors.endswith("\n") and one_sentence(PROGRAM[name][0], errors[:-1].split("\n")), what
    assert refused > count // 4, json.dumps({"refused": refused, "of": count})


@pytest.mark.parametrize("name", GOOD)
def test_a_file_that_is_wrong_ends_in_one_sentence(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 12)


@pytest.mark.long
@pytest.mark.parametrize("name", GOOD)
def test_thousands_of_wrong_files_end_in_one_sentence(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 2000)
