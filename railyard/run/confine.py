"""Player and server of a run are not root: whom they run as, and where they write.

They find their programs and folders through descriptors and the current directory, because that user may not enter the
folders above (root's own, a test's).
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 6, 7, 8
NOBODY = "nobody"


def effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def user() -> pwd.struct_passwd | None:
    """Who called sudo, else nobody. None where this process cannot change users: then all stays as it is."""
    rights = effective_capabilities()
    if not all(rights >> bit & 1 for bit in (CAP_SETGID, CAP_SETUID, CAP_SETPCAP)):
        return None
    caller = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(caller)) if caller.isdecimal() and int(caller) else pwd.getpwnam(NOBODY)
    except KeyError:
        return None


def can_reach(files: Iterable[Path]) -> bool:
    """Whether everybody may read these files and enter the folders above them."""
    return all(
        path.stat().st_mode & (stat.S_IXOTH if path.is_dir() else stat.S_IROTH)
        for file in files
        for path in (file, *file.parents)
    )


def arguments(who: pwd.struct_passwd, capability: str | None = None) -> list[str]:
    """Arguments of setpriv: that user, no capability but the one named, and none to be gained."""
    kept = f"-all,+{capability}" if capability else "-all"
    return [
        *("--reuid", str(who.pw_uid), "--regid", str(who.pw_gid)),
        *(["--clear-groups"] if who.pw_name == NOBODY else ["--init-groups"]),
        *("--inh-caps", kept, "--ambient-caps", kept, "--bounding-set", kept, "--no-new-privs"),
    ]


def make_folder(folder: Path, who: pwd.struct_passwd) -> None:
    """A folder for results that the user may write to."""
    for each in (folder, folder / "qlog"):
        each.mkdir()
        os.chown(each, who.pw_uid, who.pw_gid)


def gather(folder: Path, run_dir: Path) -> None:
    """What was written there joins the run's files and becomes this process's. Only plain files do: a link that the
    user made could lead anywhere. None takes the place of a file that the run has already."""
    if not folder.is_dir():
        return
    for file in sorted(folder.rglob("*")):
        facts = file.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            continue
        if os.geteuid() == 0:
            os.chown(file, 0, 0, follow_symlinks=False)
        target = run_dir / file.relative_to(folder)
        if target.parent.is_dir() and not os.path.lexists(target):
            file.rename(target)
    shutil.rmtree(folder, ignore_errors=True)
