#!/usr/bin/env python3
"""Counts the cost of a packet in a link with each of its models: instructions under callgrind, which do not depend on
other load of the machine. Prints a table in Markdown.
"""

import tempfile
from pathlib import Path

from instructions import count_of, counted

from railyard.base.paths import ROOT, program

PACKETS = 20_000
MODELS: tuple[tuple[str, str], ...] = (
    ("plain", ""),
    ("`jitter`", "jitter=5"),
    ("`delay-trace`", "delay-trace={delay}"),
    ("`light-trace`", "light-trace={light} light-gap=5"),
    ("`light-trace`, `size-latency`", "light-trace={light} light-gap=5 size-latency={sizes}"),
    ("`reorder`", "reorder=0.1 reorder-delay=10"),
    ("`loss`, independent", "loss=0.01"),
    ("`loss`, Gilbert-Elliott", "loss=ge:p=0.01:r=0.3"),
    ("`onoff`", "onoff=exp:on=2000:off=100"),
    ("`radio`", "radio=sa-tmobile-2021"),
    ("`radio` and `paging`", "radio=sa-tmobile-2021 paging=1280"),
    ("`grants`", "grants=sr=10:grant=8:idle=1"),
    ("`leo`", "leo=starlink:burst=60:loss=0.5"),
    ("`duplicate`", "duplicate=0.01"),
    ("`mtu`", "mtu=1500"),
    ("`nat`", "nat=timeout=30000"),
    ("`wifi=good`", "wifi=good"),
    ("`wifi=congested`", "wifi=congested"),
    ("`cross`, 2 Mbps beside", "queue=droptail:packets=100 cross=2mbps"),
    ("`cross-profile`, random gaps", "queue=droptail:packets=100 cross-profile={cross} cross-gaps=random"),
    ("`queue=droptail`", "queue=droptail:packets=100"),
    ("`queue=codel`", "queue=codel"),
    ("`queue=pie`", "queue=pie"),
    ("`queue=fq_codel`", "queue=fq_codel"),
)
FILES = {
    "delay": "0,20\n500,25\n1000,20\n",
    "light": "0 20 0 0 3 3 9\n1000 30 0 5\n2000 20 0\n",
    "sizes": "".join(f"{bytes_} {-(1500 - bytes_) / 200:g}\n" for bytes_ in range(100, 1600, 100)),
    "cross": "0,1\n500,3\n1000,0\n",
}


def instructions(keys: list[str], packets: int, folder: Path) -> int:
    return count_of(counted([program("link-bench"), str(packets), *keys], folder, ROOT), folder)


def per_packet(keys: list[str], folder: Path) -> float:
    """The cost of PACKETS further packets / PACKETS."""
    few, many = (instructions(keys, count, folder) for count in (PACKETS, 2 * PACKETS))
    return (many - few) / PACKETS


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        print("| model | instructions a packet | beside the plain link |\n| --- | ---: | ---: |")
        plain = 0.0
        for model, keys in MODELS:
            cost = per_packet(keys.format(**{file: folder / file for file in FILES}).split(), folder)
            plain = plain or cost
            print(f"| {model} | {cost:.0f} | {cost / plain:.2f} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        raise SystemExit(f"bench/links.py: {error.filename} is missing; install it, and run make build.") from None
