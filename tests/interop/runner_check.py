"""Applies the check of one of our cases for quic-interop-runner to a recording, in the runner's own environment.

`PYTHON runner_check.py RUNNER CASE FOLDER` prints SUCCEEDED, FAILED or UNSUPPORTED. FOLDER has sim/trace_node_left.pcap
and sim/trace_node_right.pcap, keys.log, www/ and downloads/.
"""

import importlib
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

CASES_DIR = Path(__file__).resolve().parents[2] / "docker" / "interop"


def main(runner: str, name: str, folder: Path) -> None:
    os.chdir(runner)
    sys.path[:0] = [runner, str(CASES_DIR)]
    logging.basicConfig(level=logging.INFO)
    cases = importlib.import_module("multipath_cases").CASES
    [kind] = [case for case in cases if case.name() == name]
    keys = str(folder / "keys.log")
    case = kind(SimpleNamespace(name=str(folder / "sim")), keys, keys)
    case._server_www_dir = SimpleNamespace(name=str(folder / "www"))
    case._client_download_dir = SimpleNamespace(name=str(folder / "downloads"))
    case._files = [file.name for file in (folder / "www").iterdir()]
    print(case.check().name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
