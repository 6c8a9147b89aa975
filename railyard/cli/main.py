"""The command line: every command of `railyard`. A command's module is imported when the command is used, because the
libraries of all commands together take seconds to load."""

import ast
import codecs
import logging
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from railyard.base.errors import MOST_LETTERS, UserError, fault_words
from railyard.base.provenance import version_words
from railyard.base.words import printable
from railyard.cli.start import INTERRUPTED, loaded

TRACEBACK_VARIABLE = "RAILYARD_TRACEBACK"

# The module and the function of each command; for a group of commands, the function is its callback.
GROUPS = {
    "Run": {
        "run": "runs:run",
        "repeat": "repeat:repeat_command",
    },
    "Look": {
        "show": "results:show_command",
        "serve": "serve:serve_command",
        "explain": "explain:explain_command",
        "qlog": "qlog:qlog_command",
        "report": "report:report_command",
        "query": "query:query_command",
        "figures": "figures:figures_command",
        "archive": "archive:archive_command",
        "clean": "clean:clean_command",
    },
    "Compare": {
        "compare": "results:compare_command",
        "diff": "runs:diff",
        "gate": "gate:gate",
    },
    "Traces": {
        "traces": "traces:group",
        "link-stats": "links:link_stats_command",
    },
    "Study": {
        "study": "study:study_command",
        "stress": "stress:stress_command",
    },
}
COMMANDS = {name: place for commands in GROUPS.values() for name, place in commands.items()}
MOVED = {
    "list": "show",
    "link-plot": "link-stats LOG --plot FILE",
    "traces plot": "traces stats PAIR_OR_FILE --plot FILE",
}
"""Names of earlier versions, and what does the same now."""
EXAMPLES = {
    "Run": (
        "railyard run demo --arena sim",
        "railyard run mine.yaml --dry-run",
        "railyard repeat demo/subway-1--xlink--s1 --out again",
    ),
    "Look": (
        "railyard show",
        "railyard show demo --format csv",
        "railyard explain demo/subway-1--xlink--s1 --chunk 7",
    ),
    "Compare": (
        "railyard compare demo --against vanilla-mp",
        "railyard diff demo/subway-1--xlink--s1 demo/subway-1--vanilla-mp--s1",
        "railyard gate --baseline main",
    ),
    "Traces": (
        "railyard traces stats subway-1",
        "railyard traces convert drive.pcap --address 192.0.2.7 --out drive.down",
        "railyard link-stats links/wifi.down.log",
    ),
    "Study": (
        "railyard study",
        "railyard study early-data --kept",
        "railyard stress 01 03 --scheme xlink+",
    ),
}


class _Unloaded(TyperCommand):
    """A command whose module is not imported. Its help is read from the source."""

    def __init__(self, name: str, place: str) -> None:
        self.module, _, self.function = place.partition(":")
        super().__init__(name=name, rich_help_panel=next(group for group, names in GROUPS.items() if name in names))

    @property
    def help(self) -> str:
        source = (Path(__file__).parent / f"{self.module}.py").read_text(encoding="utf-8")
        functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
        return next(ast.get_docstring(node) or "" for node in functions if node.name == self.function)

    @help.setter
    def help(self, _: str | None) -> None:
        """Ignores assignments: the class above sets it."""

    def load(self) -> Any:
        module = import_module(f"railyard.cli.{self.module}")
        function = getattr(module, self.function)
        alone = typer.Typer(add_completion=False)
        if self.function == "group":
            alone.add_typer(module.app, name=self.name)
            return typer.main.get_group(alone).commands[str(self.name)]
        alone.command(self.name)(function)
        return typer.main.get_command(alone)


class _Commands(TyperGroup):
    """Imports the module of a command when that command is run or completed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _Unloaded(name, place) for name, place in COMMANDS.items()} | dict(self.commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing or any(word.startswith("-") for word in args):
            return super().parse_args(ctx, args)
        # For completion: parsing would import pydantic, and there are no own options to parse.
        ctx._protected_args, ctx.args = args[:1], args[1:]
        return args[1:]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        for group, examples in EXAMPLES.items():
            formatter.write(f" {group}:\n" + "".join(f"   {example}\n" for example in examples))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        for old in (args[0], " ".join(args[:2])):
            if old in MOVED and not ctx.resilient_parsing:
                raise UserError(f"`railyard {old}` is `railyard {MOVED[old]}` now.")
        name, command, rest = super().resolve_command(ctx, args)
        command = command.load() if isinstance(command, _Unloaded) else command
        loaded()
        return name, command, rest


def whole() -> Any:
    """All commands, with their modules imported."""
    group: Any = typer.main.get_command(app)
    group.commands |= {name: one.load() for name, one in group.commands.items() if isinstance(one, _Unloaded)}
    return group


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(asked: bool) -> None:
    if asked:
        print(version_words())
        raise typer.Exit


@app.callback()
def common(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and the git revision, and exit.",
        ),
    ] = False,
) -> None:
    """Compare multipath transport schemes over paired mobility traces."""


def main() -> None:
    """The entry point. An error that a user can correct ends in one sentence and exit code 2."""
    # For numpy, if a command loads it: its products are small, and a second thread mostly waits for the first one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Without a home directory it prints three lines about its cache.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    _replace_what_has_no_code()
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        _fail(str(error))
    except typer.TyperException as error:
        sentence = error.format_message().replace(": Value error, ", ": ")  # pydantic's prefix of a sentence
        _fail(sentence or "a command is missing; `railyard --help` names them.")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.exit(141)
    except UnicodeEncodeError as error:
        _fail(
            f"{error.object[:MOST_LETTERS]!r} cannot be written: a name in it is not UTF-8; rename that file or folder."
        )
    except OSError as error:
        place = error.filename or "the results or the standard output"
        _fail(f"{place}: {error.strerror or error}; what is complete there is kept.")
    except MemoryError:
        _fail("out of memory; what is complete in the results is kept.")
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # pydantic raises its own error
            sys.exit(INTERRUPTED)
        _fault(error)


def _replace_what_has_no_code() -> None:
    """Where the locale's encoding is not UTF-8, prints `?` for characters that it lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="replace")


def _fault(error: Exception) -> None:
    """Reports an unexpected error: a mistake in a file that nothing checks, or a fault of Railyard. The exit code is
    not 1, which is a verdict."""
    if os.environ.get(TRACEBACK_VARIABLE):
        raise error
    _fail(
        f"{fault_words(error)}. A file that was read is not what railyard writes, or railyard is at fault: "
        f"with {TRACEBACK_VARIABLE}=1 in the environment the same command prints the traceback for a report."
    )


def _fail(sentence: str) -> None:
    print(f"railyard: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
