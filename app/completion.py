"""Completion by Tab: what may complete the last word of a command line, and the shell scripts that ask for it.

A script in bash, zsh or fish runs the program with COMPLETION_ASKED set. The program prints first which files may
complete the word, too (none, files or tflite; the shell finds them), then each word, its help behind a tab.
"""

import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

from .frame.looks.effects import BUILT_IN_BACKGROUNDS
from .models.entries import CATALOGUE, COMBINED, SEGMENTERS
from .settings.settings import as_text
from .verb_options import COMPLETION_ASKED

SHELLS = ("bash", "zsh", "fish")

ShellFiles = Literal["none", "files", "tflite"]

_CHOICES = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")  # as an option's help has them
_OF_FILES = re.compile(r"FILE|DIR|PATH.*|INPUT|CLIP")

_SCRIPTS = {
    "bash": r"""
_texelflow() {
    local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} found
    [ "$word" != = ] || word=
    found=($(@ASKED@=1 @PROGRAM@ "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    COMPREPLY=("${found[@]:1}")
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
    case ${found[0]:-none} in
        files) COMPREPLY+=($(compgen -f -- "$word")) ;;
        tflite) COMPREPLY+=($(compgen -d -- "$word") $(compgen -f -X '!*.tflite' -- "$word")
            $(compgen -f -X '!*.task' -- "$word")) ;;
        *) return ;;
    esac
    compopt -o filenames 2>/dev/null
}
complete -F _texelflow texelflow
""",
    "zsh": r"""
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_texelflow() {
    local -a found
    found=("${(@f)$(@ASKED@=1 @PROGRAM@ "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    local files=${found[1]:-none}
    shift found
    found=("${(@)found//:/\\:}")
    found=("${(@)found/$'\t'/:}")
    (( $#found )) && _describe texelflow found
    case $files in
        files) _files ;;
        tflite) _files -g '*.(tflite|task)' ;;
    esac
}
compdef _texelflow texelflow
""",
    "fish": r"""
function __texelflow
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -l found (env @ASKED@=1 @PROGRAM@ $before[2..-1] "$word" 2>/dev/null)
    test (count $found) -gt 1; and printf '%s\n' $found[2..-1]
    switch "$found[1]"
        case files
            __fish_complete_path "$word"
        case tflite
            __fish_complete_suffix .tflite
    end
end
complete -c texelflow -f -a '(__texelflow)'
""",
}


@dataclass(frozen=True)
class Candidates:
    """What may stand in a place: words with their help, and which files the shell shall add."""

    words: tuple[tuple[str, str], ...] = ()
    files: ShellFiles = "none"


def answer_completion(command: Any, words: Sequence[str]) -> int:
    """Print the candidates for the last word of a command line of this command of Typer's: the exit code."""
    found = completions(command, words)
    print(found.files, *(f"{word}\t{' '.join(help.split())}" for word, help in found.words), sep="\n")
    return 0


def completions(command: Any, words: Sequence[str]) -> Candidates:
    """What may stand in place of the last word, '' where nothing of it is typed. bash parts --effect=blur at the =."""
    typed = words[-1].removeprefix("=") if words else ""
    option = None
    for word in words[:-1]:
        if word == "=":
            continue
        if option:
            option = None  # that was its value
        elif word.startswith("-"):
            option = _option(command, word)
        else:
            command = getattr(command, "commands", {}).get(word, command)
    name, equals, value = typed.partition("=")
    if not option and equals and name.startswith("--"):
        found = _values(_option(command, name))
        return Candidates(tuple((f"{name}={word}", help) for word, help in _fitting(found.words, value)))
    found = _values(option) if option else _beginnings(command, typed)
    return Candidates(tuple(_fitting(found.words, typed)), found.files)


def _fitting(words: Iterable[tuple[str, str]], typed: str) -> Iterator[tuple[str, str]]:
    return ((word, help) for word, help in words if word.startswith(typed))


def _option(command: Any, name: str) -> Any:
    """The option of that name, if it takes a value."""
    return next((each for each in command.params if name in each.opts and not each.is_flag), None)


def _beginnings(command: Any, typed: str) -> Candidates:
    """Options, verbs, or what the first argument takes."""
    if typed.startswith("-"):
        shown = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
        names = ((name, each.help or "") for each in shown for name in (*each.opts, *each.secondary_opts))
        return Candidates((*names, ("--help", "Show what there is, and stop.")))
    if verbs := getattr(command, "commands", None):
        return Candidates(tuple((name, (verb.help or "").partition("\n")[0]) for name, verb in verbs.items()))
    return _values(next((each for each in command.params if each.param_type_name == "argument"), None))


def _values(parameter: Any) -> Candidates:
    """What an option or an argument takes, by the placeholder that help shows for it."""
    if parameter is None:
        return Candidates()
    shown, is_argument = parameter.metavar or "", parameter.param_type_name == "argument"
    if _CHOICES.fullmatch(shown):
        return Candidates(tuple((choice, "") for choice in shown.split("|")))
    if shown in ("MODEL", "NAMES", "CLIP|MODEL", "NAME|FILE") or (shown == "NAME" and is_argument):
        names = SEGMENTERS if "--small-model" in parameter.opts else (*CATALOGUE, *COMBINED)
        files: ShellFiles = "files" if shown == "CLIP|MODEL" else "none" if shown == "NAME" else "tflite"
        return Candidates(tuple((name, "") for name in names), files)
    if "--camera" in parameter.opts:
        return Candidates((("pattern", "a moving test picture"),), "files")
    if "--background" in parameter.opts:
        return Candidates(tuple((name, "built in") for name in BUILT_IN_BACKGROUNDS), "files")
    return Candidates(files="files" if _OF_FILES.fullmatch(shown) else "none")


def completion_script(shell: str) -> str:
    """What a shell reads to have Tab complete. Raises UsageError for another shell."""
    if shell not in SHELLS:
        raise UsageError(f"{as_text(shell)}: one of {', '.join(SHELLS)} is needed{meant(shell, SHELLS)}")
    return _SCRIPTS[shell].lstrip().replace("@ASKED@", COMPLETION_ASKED).replace("@PROGRAM@", shlex.quote(_program()))


def _program() -> str:
    """The installed command that this process was started by, or that of its interpreter."""
    beside = Path(sysconfig.get_path("scripts"), "texelflow")
    started = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "texelflow" else None
    return str(Path(started).absolute()) if started else str(beside) if beside.exists() else "texelflow"


def install_completion(shell: str) -> str:
    """Have new shells of the user complete: a line that says what was written. Raises UsageError."""
    text = completion_script(shell)
    place = (
        platformdirs.user_config_path("fish") / "completions" / "texelflow.fish" if shell == "fish"
        else platformdirs.user_data_path("texelflow", appauthor=False) / f"completion.{shell}"
    )  # fmt: skip
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        if shell != "fish":  # which looks there by itself
            _have_read(place, Path.home() / f".{shell}rc")
    except OSError as error:
        advice = f"have {shell} read what --show-completion {shell} prints"
        raise UsageError(f"{error.filename} cannot be written ({error.strerror}); {advice}") from None
    return f"written: {place}; Tab completes in shells that are opened from now on"


def _have_read(place: Path, by: Path) -> None:
    """Add a line to what a shell reads when it starts, once."""
    line = f"[ ! -r {shlex.quote(str(place))} ] || . {shlex.quote(str(place))}\n".encode()
    before = by.read_bytes() if by.exists() else b""
    if line not in before:
        with by.open("ab") as file:
            file.write((b"\n" if before and not before.endswith(b"\n") else b"") + line)
