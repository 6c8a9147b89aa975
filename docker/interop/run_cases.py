#!/usr/bin/env python3
"""Runs quic-interop-runner with the cases of multipath_cases.py and the image railyard/interop as "xlink".

Usage: QUIC_INTEROP_RUNNER=DIR docker/interop/run_cases.py OPTIONS OF ITS run.py
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
IMPLEMENTATION = {"image": os.environ.get("XLINK_IMAGE", "railyard/interop"), "url": "https://localhost/", "role": None}


def main() -> int:
    folder = Path(os.environ.get("QUIC_INTEROP_RUNNER", "")).resolve()
    if not os.environ.get("QUIC_INTEROP_RUNNER") or not (folder / "testcases_quic.py").is_file():
        print("run_cases: QUIC_INTEROP_RUNNER has to name a checkout of quic-interop-runner.", file=sys.stderr)
        return 2
    os.chdir(folder)  # it reads its files from the folder that it is started in
    sys.path[:0] = [str(folder), str(HERE)]
    import implementations  # noqa: PLC0415
    import multipath_cases  # noqa: PLC0415
    import testcases_quic  # noqa: PLC0415

    known = implementations.get_quic_implementations()
    ours = {"xlink": {**IMPLEMENTATION, "role": implementations.Role.BOTH}}
    implementations.get_quic_implementations = lambda: {**known, **ours}
    testcases_quic.TESTCASES_QUIC += multipath_cases.CASES
    import run  # noqa: PLC0415

    return int(run.main() or 0)


if __name__ == "__main__":
    sys.exit(main())
