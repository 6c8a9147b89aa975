"""The program `railyard`. Until the modules of its command are loaded, Ctrl-C ends it at once, because an interrupted
import prints a traceback or swallows the interrupt."""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

INTERRUPTED = 130  # 128 + SIGINT, as in shells


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)


def _open_standard_files() -> None:
    """Opens /dev/null for each standard file that the caller has closed. Otherwise another file would get its number,
    and programs that are started would write into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _use_utf8() -> None:
    """Starts this program again in UTF-8 mode if the locale has another encoding: files and the names in them are in
    UTF-8 on every machine. What is printed keeps the locale's encoding."""
    if sys.getfilesystemencoding() != "utf-8" and "utf8" not in sys._xoptions:
        printed = f"{sys.stdout.encoding}:{sys.stdout.errors}"
        environment = os.environ | {"PYTHONIOENCODING": printed, "PYTHONUTF8": "1"}
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], environment)  # noqa: S606


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:
        print(
            f"railyard: the current folder: {error.strerror}; it was removed or is closed: cd to another.",
            file=sys.stderr,
        )
        sys.exit(2)


def main() -> None:
    _open_standard_files()
    _use_utf8()
    _check_folder()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    import_module("railyard.cli.main").main()


def loaded() -> None:
    """Makes Ctrl-C raise KeyboardInterrupt from now on, so that the command handles it."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
