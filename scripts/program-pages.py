"""Writes the man page and the bash completion of each C program from its --help.

usage: program-pages.py BIN SHARE VERSION PROGRAM...
Reads BIN/PROGRAM --help. Writes SHARE/man/man1/PROGRAM.1 and SHARE/bash-completion/completions/PROGRAM.

The help itself is made from the tables of options, so page, completion and program cannot disagree. Needs nothing but
Python: `make install` runs it.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUMMARIES = {
    "mpshell": "run a command over emulated links, one for each path",
    "mpshell-ctl": "change the links of a running mpshell",
    "relay-run": "run a player over a relay of another transport",
    "saturatr": "record the traces of several links at the same time",
    "vkernel": "run a command in a Linux kernel of its own, in virtual time",
    "tcp-relay": "carry local connections as connections of TCP or MPTCP",
    "udp-flow": "send, receive and time UDP datagrams, to measure an emulator",
    "xlink-balancer": "route QUIC datagrams by the server ID in their connection ID",
    "xlink-get": "fetch files over QUIC, over one path or several",
    "xlink-load": "open many QUIC connections to one server",
    "xlink-player": "play a constant-bit-rate video over QUIC, TCP, MPTCP or a relay",
    "xlink-relay": "carry local connections as streams of libxlink",
    "xlink-server": "serve byte ranges of videos over multipath QUIC, TCP and MPTCP",
    "xlink-sim": "run server, player and links of one job in virtual time",
}
FULL_LINE = 80
SETTINGS_OF = "xlink-server"  # prints the names that settings take


@dataclass
class Entry:
    """A term with its meaning: an option with its value, a word, an argument."""

    term: str
    meaning: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Paragraph:
    lines: list[str]


@dataclass(frozen=True)
class Help:
    usages: list[str]
    parts: list[Entry | Heading | Paragraph]

    @property
    def entries(self) -> Iterator[Entry]:
        return (part for part in self.parts if isinstance(part, Entry))


def parse(text: str) -> Help:
    """Usage lines; entries, which begin after two spaces; headings, which end with a colon; paragraphs."""
    usages: list[str] = []
    parts: list[Entry | Heading | Paragraph] = []
    open_paragraph = False
    for line in text.rstrip().splitlines():
        follows = open_paragraph
        open_paragraph = False
        if not parts and re.match(r"(usage:| {7})", line):
            usages.append(line.removeprefix("usage:").strip())
        elif match := re.match(r"  (\S.*?)(?:  +(\S.*))?$", line):
            parts.append(Entry(match[1], [match[2]] if match[2] else []))
        elif line.startswith("   ") and parts and isinstance(parts[-1], Entry):
            parts[-1].meaning.append(line.strip())
        elif line.endswith(":"):
            parts.append(Heading(line.removesuffix(":")))
        elif line and follows and isinstance(parts[-1], Paragraph) and not _begins(line, parts[-1].lines[-1]):
            parts[-1].lines.append(line)
            open_paragraph = True
        elif line:
            parts.append(Paragraph([line]))
            open_paragraph = True
    return Help(usages, parts)


def _begins(line: str, before: str) -> bool:
    """Whether a line begins another paragraph, because the line before it had room for its first word."""
    return line[:1].isupper() and len(before) < FULL_LINE


# --- the man page -----------------------------------------------------------------------------------------------------


def roff(text: str) -> str:
    """Text with roff's special characters escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    text = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)
    return f"\\&{text}" if text.startswith(".") else text


def breakable(text: str) -> str:
    """A synopsis or a term: a line may end within a word, before a bracket and after a bar."""
    return re.sub(r"(?<=.)\[(?=,)|(?<=\w)\|", lambda match: {"[": "\\:[", "|": "|\\:"}[match[0]], roff(text))


def _term(entry: Entry) -> str:
    """The option in bold, its value in italics."""
    name, _, value = entry.term.partition(" ")
    return f"\\fB{roff(name)}\\fR" + (f" \\fI{breakable(value)}\\fR" if value else "")


def man_page(program: str, version: str, program_help: Help, programs: list[str]) -> str:
    lines = [f'.TH {roff(program).upper()} 1 "" "Railyard {version}" "Railyard"', ".nh", ".ad l"]
    lines += [".SH NAME", f"{roff(program)} \\- {roff(SUMMARIES[program])}", ".SH SYNOPSIS"]
    for usage in program_help.usages:
        lines += [f"\\fB{roff(program)}\\fR {breakable(usage.removeprefix(program).strip())}", ".br"]
    lines.pop()
    section = ""

    def enter(name: str) -> None:
        nonlocal section
        if section != name:
            lines.append(f".SH {name}")
            section = name

    for part in program_help.parts:
        match part:
            case Entry():
                enter("OPTIONS" if part.term.startswith("-") else "COMMANDS" if part.term[0].islower() else "ARGUMENTS")
                lines += [".TP", _term(part), *map(roff, part.meaning)]
            case Heading():
                enter("OPTIONS")
                lines.append(f".SS {roff(part.text)}")
            case Paragraph():
                enter("DESCRIPTION" if section in ("", "DESCRIPTION") else "NOTES")
                lines += [".PP", *map(roff, part.lines)]
    others = [f"\\fB{roff(other)}\\fR(1)" for other in programs if other != program]
    lines += [".SH SEE ALSO", ",\n".join(others)]
    return re.sub(r"^(\.SH [A-Z]+)\n\.PP$", r"\1", "\n".join(lines), flags=re.MULTILINE) + "\n"


# --- completion -------------------------------------------------------------------------------------------------------


def words_of(value: str) -> list[str]:
    """The words of a value, if its description names them: `off|on[,rtt=FACTOR]`."""
    choices = re.sub(r"\[.*\]", "", value).split("|")
    return [word for word in choices if re.fullmatch(r"[a-z0-9][a-z0-9+.-]*", word)] if len(choices) > 1 else []


def completion(program: str, program_help: Help, settings: dict[str, list[str]]) -> str:
    options = [entry.term for entry in program_help.entries if entry.term.startswith("--")]
    names = [term.partition(" ")[0] for term in options]
    cases = []
    for term in options:
        name, _, value = term.partition(" ")
        words = words_of(value) or (settings.get(name, []) if value else [])
        if words:
            cases.append(f'    {name}) mapfile -t COMPREPLY < <(compgen -W "{" ".join(words)}" -- "$word"); return ;;')
    valued = [name for name, term in zip(names, options, strict=True) if " " in term]
    if valued:  # without a reply, bash completes the name of a file
        cases.append(f"    {' | '.join(valued)}) return ;;")
    commands = [usage.split()[1] for usage in program_help.usages if re.fullmatch(r"[a-z]+", usage.split()[1])]
    place = 1
    if not commands:  # after the first argument
        commands = [entry.term.split()[0] for entry in program_help.entries if re.match(r"[a-z]+( |$)", entry.term)]
        place = 2
    function = "_" + program.replace("-", "_")
    lines = [
        f"# bash completion of {program}, written from its --help",
        f"{function}() {{",
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
        "    COMPREPLY=()",
    ]
    if any("-- COMMAND" in usage for usage in program_help.usages):
        lines += [
            "    local i",
            "    for ((i = 1; i < COMP_CWORD; i++)); do",
            '        [ "${COMP_WORDS[i]}" = -- ] || continue',
            '        ((i + 1 < COMP_CWORD)) || mapfile -t COMPREPLY < <(compgen -c -- "$word")',
            "        return",
            "    done",
        ]
    if cases:
        lines += ["    case $before in", *cases, "    esac"]
    lines += [
        f'    [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W "{" ".join([*names, "--help"])}" -- "$word")'
    ]
    if commands:
        reply = f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(commands)}" -- "$word")'
        lines += [f"    [[ $word == -* ]] || ((COMP_CWORD != {place})) || {reply}"]
    return "\n".join([*lines, "}", f"complete -o default -F {function} {program}"]) + "\n"


# --- both -------------------------------------------------------------------------------------------------------------


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def main() -> None:
    binaries, share, version, *programs = sys.argv[1:]
    unknown = [program for program in programs if program not in SUMMARIES]
    if unknown:
        sys.exit(f"program-pages.py: SUMMARIES does not say what {', '.join(unknown)} does; add a line.")
    described = json.loads(_output(f"{binaries}/{SETTINGS_OF}", "--describe-settings"))["settings"]
    settings = {f"--{setting['name'].replace('_', '-')}": setting.get("words", []) for setting in described}
    manual, completions = Path(share, "man", "man1"), Path(share, "bash-completion", "completions")
    for folder in (manual, completions):
        folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        program_help = parse(_output(f"{binaries}/{program}", "--help"))
        (manual / f"{program}.1").write_text(man_page(program, version, program_help, sorted(programs)))
        (completions / program).write_text(completion(program, program_help, settings))


if __name__ == "__main__":
    main()
