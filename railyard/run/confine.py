"""Confines player and server of a run, which do not run as root: their user, their rights and their folders.

They find programs and folders through descriptors and the current directory, because their user may not enter the
folders above, such as root's or a test's.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from railyard.base.errors import UserError

CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 6, 7, 8
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
NOBODY = "nobody"


def may_make_namespaces() -> bool:
    """Whether this process may make network namespaces, and devices in them."""
    return all(effective_capabilities() >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_ADMIN))


def effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def user() -> pwd.struct_passwd | None:
    """The user of player and server: the caller of sudo, else nobody. None: this process cannot change users."""
    rights = effective_capabilities()
    if not all(rights >> bit & 1 for bit in (CAP_SETGID, CAP_SETUID, CAP_SETPCAP)):
        return None
    caller = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(caller)) if caller.isdecimal() and int(caller) else pwd.getpwnam(NOBODY)
    except KeyError:
        return None


def can_reach(files: Iterable[Path]) -> bool:
    """Whether every user may read these files and enter the folders above them."""
    return all(
        path.stat().st_mode & (stat.S_IXOTH if path.is_dir() else stat.S_IROTH)
        for file in files
        for path in (file, *file.parents)
    )


def check_programs(files: Iterable[Path]) -> None:
    """Raises UserError if player and server are to run as NOBODY, who may not run one of these programs."""
    who = user()
    for file in files:
        if who is not None and who.pw_name == NOBODY and not file.stat().st_mode & stat.S_IXOTH:
            raise UserError(
                f"{file} may be run by its owner alone, and player and server run as {NOBODY}; "
                f"`chmod -R o+rX {file.parent}` lets them."
            )


def arguments(who: pwd.struct_passwd, capability: str | None = None) -> list[str]:
    """Arguments of setpriv: the user, no capability except the named one, and no way to gain others."""
    kept = f"-all,+{capability}" if capability else "-all"
    return [
        *("--reuid", str(who.pw_uid), "--regid", str(who.pw_gid)),
        *(["--clear-groups"] if who.pw_name == NOBODY else ["--init-groups"]),
        *("--inh-caps", kept, "--ambient-caps", kept, "--bounding-set", kept, "--no-new-privs"),
    ]


def make_folder(folder: Path, who: pwd.struct_passwd) -> None:
    """Makes a folder for results that the user may write to."""
    for each in (folder, folder / "qlog"):
        each.mkdir()
        os.chown(each, who.pw_uid, who.pw_gid)


def gather(folder: Path, run_dir: Path) -> None:
    """Moves the files of a folder to those of the run and, as root, takes them over. Ignores links and other special
    files, because a link of that user could lead anywhere, and files that the run has already. Removes the folder."""
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
