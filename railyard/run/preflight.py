"""What a run of an arena needs of the machine, checked before anything starts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from railyard.base.errors import UserError
from railyard.run import containers, vkernel
from railyard.run.confine import effective_capabilities

TUN = Path("/dev/net/tun")
TOOLS = {"ip": "iproute2", "unshare": "util-linux", "setpriv": "util-linux"}
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21


def check_machine() -> None:
    """Raises UserError with the one thing that is missing."""
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise UserError(f"the program '{tool}' is not there; install the Debian package {package}.")
    capabilities = effective_capabilities()
    if not all(capabilities >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_ADMIN)):
        raise UserError(
            "no permission to make network namespaces and TUN devices (CAP_NET_ADMIN, CAP_SYS_ADMIN); run as root."
        )
    if not TUN.exists():
        raise UserError(f"{TUN} is not there; load the kernel's tun module (modprobe tun).")
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise UserError(f"{TUN} may not be opened; run as root, or give the container that device.")


def why_no_machine() -> str | None:
    """Why no run of mpshell can be done here; None when one can."""
    try:
        check_machine()
    except UserError as error:
        return str(error)
    return None


KERNEL_TOOLS = {"setpriv": "util-linux", "ip": "iproute2", "timeout": "coreutils"}


def check_kernel(tell: Callable[[str], None]) -> None:
    """Raises UserError where no time-travel kernel can run; builds one first where there is none, or an old one."""
    for tool, package in KERNEL_TOOLS.items():
        if shutil.which(tool) is None:
            raise UserError(f"the program '{tool}' is not there; install the Debian package {package}.")
    if vkernel.at_hand() is None:
        tell(f"The first run in the kernel arena builds its kernel: about {vkernel.MINUTES} minutes of processor time.")
        vkernel.build()
    elif (changed := vkernel.stale()) is not None:
        tell(
            f"The kernel in {vkernel.cache_folder()} has another {changed}, so the right one is taken or built: "
            f"up to {vkernel.MINUTES} minutes of processor time."
        )
        vkernel.build()


def check_arena(arena: str) -> None:
    """Raises UserError where runs of that arena cannot start on this machine. Ends what killed ones left running."""
    if arena == "mpshell":
        check_machine()
    elif arena == "kernel":
        check_kernel(lambda sentence: print(sentence, file=sys.stderr))
    elif arena == "docker":
        containers.check_engine()
        containers.sweep()
