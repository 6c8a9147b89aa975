"""Reads YAML with line numbers. A mistake in a file becomes one sentence with file, line, field and remedy."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer
from yaml.constructor import SafeConstructor

from railyard.base.errors import UserError
from railyard.base.files import read_regular

Location = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class FieldError(ValueError):
    """An error of a check over several fields of a model, with the field that the sentence names."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


MOST_VALUES = 100_000
"""The most values in a file with aliases expanded: nested aliases expand a few hundred bytes to gigabytes."""


BEGUN = ("while scanning a simple key", "while parsing a flow ", "while scanning a quoted ")
"""Contexts of errors that a later line reveals: the mistake is where the context begins."""


class _TooManyAliases(yaml.MarkedYAMLError):
    """An alias that contains itself, or that expands the file to too many values."""


LARGEST = 2**64
"""The limit of whole numbers: no field takes more, and Python refuses to print much larger ones."""
MOST_DIGITS = 100
"""The most characters of a whole number, with base and underscores: parsing 1:1:1:… takes quadratic time."""


class _Checked(Composer, SafeConstructor):
    """Counts the values of a file with its aliases expanded, and names the line of an invalid value."""

    def __init__(self) -> None:
        Composer.__init__(self)
        self.values = 0
        self.values_of: dict[int, int] = {}  # by the id() of a complete node

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        before = self.values
        alias = self.peek_event() if self.check_event(yaml.AliasEvent) else None  # type: ignore[attr-defined]
        node: yaml.Node | None = super().compose_node(parent, index)
        self.values += 1 if alias is None else self.values_of.get(id(node), MOST_VALUES)
        if alias is None:
            self.values_of[id(node)] = self.values - before
        elif self.values > MOST_VALUES:
            raise _TooManyAliases(problem=alias.anchor, problem_mark=alias.start_mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Constructs a value. The text of a scalar may be invalid for its tag: 2001-13-45, 0x_, !!bool x."""
        try:
            if node.tag.endswith(":int") and len(node.value) > MOST_DIGITS:
                raise ValueError
            value = super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, OverflowError):
            raise self._no_value(node, f"is no {node.tag.rpartition(':')[2]}") from None
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise self._no_value(node, "is a number of more than 64 bits")
        return value

    @staticmethod
    def _no_value(node: yaml.Node, what: str) -> yaml.MarkedYAMLError:
        text = str(node.value)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        return yaml.MarkedYAMLError(problem=f"'{shown}' {what}", problem_mark=node.start_mark)


class _Loader(_Checked, yaml.SafeLoader):
    """The parser whose errors are reported."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Checked.__init__(self)


OWN_RULES = re.compile("[\t!?\ufeff]")
"""Characters that libyaml does not treat like the other parser: tabs between values, '!' without a tag, '?' in words
between brackets, a byte order mark."""


_fast: Callable[[str], _Checked] = _Loader
if yaml.__with_libyaml__:

    class _FastLoader(_Checked, yaml.CSafeLoader):
        """Parses with libyaml, in a fifth of the time."""

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            _Checked.__init__(self)

    _fast = _FastLoader


def _loaded(text: str) -> tuple[yaml.Node | None, Any]:
    """The root and the value of the one document. Raises yaml.YAMLError, RecursionError."""
    if not OWN_RULES.search(text):
        with suppress(yaml.YAMLError, RecursionError, UnicodeError):
            return _document(_fast(text))
    return _document(_Loader(text))


def _document(loader: _Checked) -> tuple[yaml.Node | None, Any]:
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_document(root)


@dataclass(frozen=True)
class YamlDocument:
    """The plain data of a YAML file, and the line on which each part of it starts."""

    path: Path
    data: dict[str, Any]
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """The line of a field, or of the nearest part around it that is written in the file."""
        return self.lines.get(self.known(location), 1)

    def known(self, location: Location) -> Location:
        """A field, or the nearest part around it that is in the file. The field itself if there is no file. The name in
        the file may be without its unit: `bitrate` of `bitrate_bps`."""
        while self.lines and location and location not in self.lines:
            bare = (*location[:-1], str(location[-1]).rpartition("_")[0])
            location = bare if bare in self.lines else location[:-1]
        return location

    def error(self, location: Location, message: str) -> UserError:
        place = f"{self.path}:{self.line(location)}" if self.lines else str(self.path)
        where = f"{field_name(location)}: " if location else ""
        return UserError(f"{place}: {where}{message}")


def field_name(location: Location) -> str:
    """A location in words: ('schemes', 2, 'cc') is "schemes[2].cc"."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


MOST_NAMES = 60
"""The most names in a sentence."""


def near_miss(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: 'did you mean "x"?', or the list of known names."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"known are {', '.join(names[:MOST_NAMES])}{more}." if names else "there are none."


def find_yaml(name: str, folder: Path, what: str) -> Path:
    """A path as given, or `folder/NAME.yaml`. `what`: the kind of file, for the sentence if there is none."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml") or given.is_file():
        return given
    path = folder / f"{name}.yaml"
    if not path.is_file() and given.is_dir():
        raise UserError(f"{name}: this is a folder; name a file of YAML, or one of {folder}.")
    if not path.is_file():
        names = [file.stem for file in folder.glob("*.yaml")]
        raise UserError(f"there is no {what} '{name}' in {folder}; {near_miss(name, names)}")
    return path


def value_of(text: str) -> Any:
    """The value of a text on the command line. Raises yaml.YAMLError."""
    try:
        return _loaded(text)[1]
    except RecursionError:
        raise yaml.YAMLError("lists or mappings lie too deep within each other") from None


def load_yaml(path: Path) -> YamlDocument:
    return document_of(path, read_text(path))


def read_text(path: Path) -> str:
    try:
        return read_regular(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}.") from None


def document_of(path: Path, text: str) -> YamlDocument:
    """The document of a file with that text. Raises UserError."""
    try:
        root, data = _loaded(text)
    except _TooManyAliases as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(
            f"{path}:{line}: with the alias *{error.problem} written out the file has more than {MOST_VALUES} values; "
            "write fewer."
        ) from None
    except yaml.MarkedYAMLError as error:
        begun = str(error.context).startswith(BEGUN)
        mark = error.context_mark if begun else error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UserError(f"{path}:{line}: this is not valid YAML: {error.problem}; correct that line.") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}:1: this is not valid YAML: {str(error).splitlines()[0]}.") from None
    except RecursionError:
        raise UserError(f"{path}:1: lists or mappings lie too deep within each other; take some levels out.") from None
    lines: dict[Location, int] = {}
    if root is not None:
        _collect(path, root, (), lines)
    if not isinstance(data, dict):
        raise UserError(f"{path}:1: the file must be a mapping of fields, 'name: value' on each line; write those.")
    return YamlDocument(path, data, lines)


def _collect(path: Path, node: yaml.Node, location: Location, lines: dict[Location, int]) -> None:
    lines[location] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _collect(path, child, (*location, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            inner = (*location, str(key.value))
            if inner in lines:
                raise UserError(
                    f"{path}:{key.start_mark.line + 1}: {field_name(inner)}: this field was already given on "
                    f"line {lines[inner]}; remove one of them."
                )
            _collect(path, child, inner, lines)
            lines[inner] = key.start_mark.line + 1


def parse(document: YamlDocument, model: type[Model]) -> Model:
    """Checks the document against a model. Raises UserError with the first mistake, in the order of the file."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        mistakes = [(_location(dict(mistake)), dict(mistake)) for mistake in error.errors()]
        # A missing field may be a misspelt one, which is unknown.
        unknown = {at[:-1] for at, mistake in mistakes if mistake["type"] == "extra_forbidden"}
        location, mistake = min(
            mistakes,
            key=lambda entry: (entry[1]["type"] == "missing" and entry[0][:-1] in unknown, document.line(entry[0])),
        )
        if str(mistake["type"]) not in ("extra_forbidden", "missing", "value_error"):
            location = document.known(location)
            others = [other for at, other in mistakes if other is not mistake and document.known(at) == location]
        else:
            others = []
        raise document.error(location, _sentence(str(mistake["type"]), location, mistake, model, others)) from None


def _location(mistake: dict[str, Any]) -> Location:
    location: Location = tuple(mistake["loc"])
    cause = mistake.get("ctx", {}).get("error")
    return (*location, cause.field) if isinstance(cause, FieldError) else location


def _sentence(
    kind: str, location: Location, mistake: dict[str, Any], model: type[BaseModel], others: list[dict[str, Any]]
) -> str:
    """The sentence for a mistake. `others`: why the value is not of the field's other types."""
    if kind == "extra_forbidden":
        return f"unknown field; {near_miss(str(location[-1]), _fields_at(model, location[:-1]))}"
    if kind == "missing":
        return "this field is missing; add it."
    if kind == "value_error":
        return str(mistake["ctx"]["error"])
    given = mistake.get("input")
    shown = _shown(given)
    wanted = _wanted(kind, mistake.get("ctx", {}))
    if wanted is not None:
        also = [_wanted(str(other["type"]), other.get("ctx", {})) for other in others]
        wanted = ", or ".join(dict.fromkeys([wanted, *filter(None, also)]))
        quotes = "; put it in quotes" if wanted == "text" and isinstance(given, bool | int | float | date) else ""
        return f"this takes {wanted}, not {shown}{quotes}."
    message = str(mistake["msg"])
    return f"{message[0].lower()}{message[1:]}, but it is {shown}; correct the value."


def _shown(given: Any) -> str:
    if isinstance(given, date):
        return f"the date {given}"
    shown = "nothing" if given is None else str(given).lower() if isinstance(given, bool) else repr(given)
    return shown[:37] + "..." if len(shown) > 40 else shown


TYPES = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "list": "a list"}
TYPES |= {"tuple": "a list", "dict": "a mapping of fields", "model": "a mapping of fields"}
LIMITS = {"greater_than_equal": ("ge", "at least"), "greater_than": ("gt", "more than")}
LIMITS |= {"less_than_equal": ("le", "at most"), "less_than": ("lt", "less than")}
PATTERNS = {
    "[A-Za-z0-9][A-Za-z0-9_.": "at most 64 letters, digits, '-', '_' and '.', a letter or a digit first",
    "[a-z0-9][a-z0-9-]{0,14}": "at most 15 of a-z, 0-9 and '-', no '-' first",
    "(bps|kbps|mbps|gbps)": "a rate such as 1.5mbps (bps, kbps, mbps or gbps)",
    ":(add|remove|standby|available):": "SECONDS:ACTION:PATH, several of them separated by commas; ACTION is add, "
    "remove, standby or available",
    r"net\.(mptcp|ipv4)\.": "the name of a setting that begins with net.mptcp. or net.ipv4.",
}
"""Patterns of texts, in words."""


def _wanted(kind: str, context: dict[str, Any]) -> str | None:
    """The values that a field takes, in words. None: the kind of mistake does not tell it."""
    if kind in LIMITS:
        limit, word = LIMITS[kind]
        return f"a value of {word} {context[limit]}"
    if kind == "too_short":
        least = context["min_length"]
        return f"at least {least} {'entry' if least == 1 else 'entries'}"
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "string_pattern_mismatch":
        return next((words for part, words in PATTERNS.items() if part in context["pattern"]), None)
    if kind == "int_from_float":
        return TYPES["int"]
    name, _, way = kind.rpartition("_")
    return TYPES.get(name) if way in ("type", "parsing") else None


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The names of the fields that the model has at a location, for suggestions."""
    current: type[BaseModel] = model
    for part in location:
        if isinstance(part, int) or part not in current.model_fields:
            continue
        inner = _model_in(current.model_fields[part].annotation)
        if inner is not None:
            current = inner
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _model_in(argument)
        if model is not None:
            return model
    return None
