"""Third parties' stacks: the files `peers/NAME/peer.yaml`, and the scheme entries `{stack: NAME, OPTION: VALUE}`.

A stack joins as two programs, the relays of both sides (docs/reference/stacks.md). The player speaks HTTP/1.1 to the
client's relay over a Unix socket; the server's relay opens connections to xlink-server. Railyard knows
only what a stack's file says.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from railyard.base.errors import UserError
from railyard.base.models import FrozenModel, StrictModel
from railyard.base.paths import PEERS_DIR, program_place
from railyard.base.provenance import Stamp, sha256_of, sha256_once, stamp_of
from railyard.base.yamlfile import load_yaml, near_miss, parse

FILE_NAME = "peer.yaml"
STACK_SCHEME = "stack"  # the scheme of every entry that names a stack
StackName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}$")]
REVISION_LIMIT_S, REVISION_BYTES = 10, 256


class StackOption(StrictModel):
    """An option of a stack: passed as `--NAME VALUE` to the relays of these sides."""

    help: str = ""
    sides: tuple[Literal["client", "server"], ...] = ("client", "server")
    values: tuple[str, ...] = ()  # none: any text
    default: str | None = None  # none: the option is left out


class Can(StrictModel):
    """What a stack can do."""

    multipath: bool = False
    migration: bool = False
    dialect: str | None = None  # of multipath QUIC, such as rfc10069


class Stack(StrictModel):
    """A file peer.yaml."""

    name: StackName
    about: str
    licence: str
    version: str | None = None
    revision: tuple[str, ...] = ()  # a command whose first line says what was built
    build: tuple[str, ...] = ()  # a command that builds both relays
    client: tuple[str, ...] = Field(min_length=1)
    server: tuple[str, ...] = Field(min_length=1)
    can: Can = Can()
    options: dict[str, StackOption] = Field(default={})
    # Whether the server's relay gets `--certificate FILE --key FILE`, a self-signed certificate of P-256 in PEM form.
    certificate: bool = False
    # Whether it is the kernel's MPTCP: the run's namespaces get it switched on, and an endpoint for each path.
    mptcp: bool = False
    # Whether `cc` is a controller of the kernel's: the server's relay gets the right to choose one that the kernel
    # keeps from ordinary users.
    kernel_cc: bool = False
    # What must be there for the build, as a sentence: shown where a program is missing.
    needs: str = ""

    @model_validator(mode="after")
    def _defaults_fit(self) -> Self:
        for name, option in self.options.items():
            if option.values and option.default is not None and option.default not in option.values:
                raise ValueError(f"the default of '{name}', {option.default}, is none of its values.")
        if self.kernel_cc and ("cc" not in self.options or self.options["cc"].default is None):
            raise ValueError("kernel_cc needs an option cc with a default.")
        return self


class StackRun(FrozenModel):
    """A stack as one run uses it."""

    name: StackName
    about: str
    file: Path
    client: tuple[str, ...]
    server: tuple[str, ...]
    options: dict[str, str]
    multipath: bool
    certificate: bool = False
    mptcp: bool = False
    kernel_cc: bool = False
    version: str | None
    sha256: dict[str, str]  # of peer.yaml and of the files among the words of both commands

    def files(self) -> list[Path]:
        """The files among the words of both commands, with links followed."""
        return _files((*self.client, *self.server))


def known_stacks() -> list[str]:
    """The names of the project's stacks."""
    return sorted(path.parent.name for path in PEERS_DIR.glob(f"*/{FILE_NAME}"))


def find_stack(name: str, folder: Path) -> tuple[Path, Stack]:
    """`NAME` is a stack of the project, `./FILE` a file beside the experiment, or the folder that it is in."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        given = folder / name
        file = given / FILE_NAME if given.is_dir() else given
    else:
        file = PEERS_DIR / name / FILE_NAME
        if not file.is_file():
            raise UserError(f"there is no stack '{name}'; {near_miss(name, known_stacks())}")
    return file.resolve(), parse(load_yaml(file), Stack)


def _word(word: str, folder: Path) -> str:
    """A word of a command: `bin:NAME` is a program of this project, and a relative path is relative to the file's
    folder."""
    if word.startswith("bin:"):
        return str(program_place(word[4:]))
    if word.startswith(("./", "../")):
        return str((folder / word).resolve())
    return word


def _command(stack: Stack, words: tuple[str, ...], file: Path) -> tuple[str, ...]:
    """The words of a command. Raises UserError if its program is missing."""
    command = tuple(_word(word, file.parent) for word in words)
    program = shutil.which(command[0])
    if program is None and os.sep in command[0] and Path(command[0]).is_file():
        raise UserError(f"{file}: {command[0]} is not executable: chmod +x it, or name its interpreter before it.")
    if program is None:
        remedy = f"build it with `make peers` ({' '.join(stack.build)})" if stack.build else "install it"
        raise UserError(f"{file}: {command[0]} is not there; {remedy}. {stack.needs}".rstrip())
    for word in command[1:]:
        if os.sep in word and word.startswith(str(file.parent)) and not Path(word).is_file():
            raise UserError(f"{file}: {word} is not there.")
    return (program, *command[1:])


def _files(words: Iterable[str]) -> list[Path]:
    """The files among the words, and the targets of links among them."""
    named = [Path(word) for word in words if os.sep in word and Path(word).is_file()]
    return list(dict.fromkeys(path for file in named for path in (file, file.resolve())))


def _options(stack: Stack, given: dict[str, str], file: Path) -> dict[str, str]:
    """The options of a run: the given ones, and the defaults of the others."""
    for name, value in given.items():
        option = stack.options.get(name)
        if option is None:
            raise UserError(f"stack '{stack.name}' has no option '{name}'; {near_miss(name, stack.options)}")
        if option.values and value not in option.values:
            raise UserError(f"'{name}' of stack '{stack.name}' takes {', '.join(option.values)}, not '{value}'.")
    defaults = {name: option.default for name, option in stack.options.items() if option.default is not None}
    return defaults | given


def _revision(stack: Stack, file: Path) -> str | None:
    if not stack.revision:
        return stack.version
    command = _command(stack, stack.revision, file)
    return _first_line(command, tuple(map(stamp_of, _files(command)))) or stack.version


@cache
def _first_line(command: tuple[str, ...], _files_of_it: tuple[Stamp, ...]) -> str | None:
    """The first line that a command prints. It runs once for each state of its files."""
    deadline, text = time.monotonic() + REVISION_LIMIT_S, b""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError:
        return None
    with process:
        output = process.stdout
        while output is not None and b"\n" not in text and len(text) < REVISION_BYTES:
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                break
            if not (piece := os.read(output.fileno(), REVISION_BYTES)):
                break
            text += piece
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    first_line = text[:REVISION_BYTES].decode(errors="replace").split("\n")[0]
    return "".join(letter for letter in first_line if letter.isprintable()).strip() or None


def resolve_stack(name: str, given: dict[str, str], folder: Path) -> StackRun:
    """Looks the stack up, checks the options and finds its programs. Raises UserError."""
    file, stack = find_stack(name, folder)
    options = _options(stack, given, file)

    def words(side: Literal["client", "server"], command: tuple[str, ...]) -> tuple[str, ...]:
        own = {key: value for key, value in options.items() if side in stack.options[key].sides}
        return (*command, *(word for key, value in own.items() for word in (f"--{key}", value)))

    client, server = _command(stack, stack.client, file), _command(stack, stack.server, file)
    return StackRun(
        name=stack.name,
        about=stack.about,
        file=file,
        client=words("client", client),
        server=words("server", server),
        options=options,
        multipath=stack.can.multipath,
        certificate=stack.certificate,
        mptcp=stack.mptcp,
        kernel_cc=stack.kernel_cc,
        version=_revision(stack, file),
        sha256={FILE_NAME: sha256_of(file)} | {path.name: sha256_once(path) for path in _files((*client, *server))},
    )


def write_build(name: str, build: Path, out: Path) -> Path:
    """Writes into `out` a peer.yaml of the same stack with other programs: `build` is a program, which takes the place
    of the first word of both commands, or a folder, whose files take the place of those with their names. If a
    folder has its own peer.yaml, that file is returned instead. Raises UserError."""
    if (build / FILE_NAME).is_file():
        return (build / FILE_NAME).resolve()
    if not build.exists():
        raise UserError(f"{build}: there is no such program or folder; build it first.")
    build, (file, stack) = build.absolute(), find_stack(name, Path())

    def words_of(field: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_of_build(_word(word, file.parent), build, is_first=not k) for k, word in enumerate(field))

    change = {name: words_of(getattr(stack, name)) for name in ("client", "server", "revision")}
    if not any(build in (Path(word), *Path(word).parents) for word in (*change["client"], *change["server"])):
        names = sorted({Path(_word(word, file.parent)).name for word in (stack.client[0], stack.server[0])})
        raise UserError(f"{build}: this folder has none of the programs of '{stack.name}' ({', '.join(names)}).")
    members = stack.model_copy(update=change | {"build": ()}).model_dump(mode="json", exclude_defaults=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE_NAME).write_text(json.dumps(members, indent=1) + "\n")
    return (out / FILE_NAME).resolve()


def _of_build(word: str, build: Path, is_first: bool) -> str:
    """A word of a command with the files of a build."""
    if build.is_file():
        return str(build) if is_first else word
    other = build / Path(word).name
    return str(other) if (is_first or os.sep in word) and other.is_file() else word


def entry_from(value: dict[str, Any]) -> dict[str, Any]:
    """`{stack: NAME, label: L, path: P, OPTION: VALUE, ...}` as the fields of a scheme entry."""
    own = ("stack", "label", "path")
    options = {str(key): _text(item) for key, item in value.items() if key not in own}
    return {key: value[key] for key in own if key in value} | {"scheme": STACK_SCHEME, "stack_options": options}


def _text(value: Any) -> str:
    """A value as text: YAML reads on and off as true and false."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
