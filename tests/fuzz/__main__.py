"""Runs attacks with many cases, and prints a table of the results.

    python -m tests.fuzz --cases 2000              # every attack
    python -m tests.fuzz models --model selfie --model other.tflite
    python -m tests.fuzz recordings --only 123     # repeats its case 123, in this process

Exit code 1 if anything was found: a defect, a crash, a hang, memory without bound. Its bytes are kept in build/fuzz.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import rich.console
from rich.progress import track

from tests.fuzz.attacks import ATTACKS, Attack
from tests.fuzz.children import Ending, in_child
from tests.fuzz.models import REFUSED_LATE
from tests.fuzz.refusals import check_line
from texelflow.app.console import Console
from texelflow.app.models.catalogue import resolve
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module

FOUND = ("raised", "crashed", "hung", "too large")
OUTCOMES = ("ran", "refused", REFUSED_LATE, *FOUND)


@dataclass(frozen=True)
class Found:
    """A case that ended as none may."""

    number: int
    ending: Ending


@dataclass(frozen=True)
class Counts:
    """What became of the cases of one attack."""

    cases: int
    outcomes: dict[str, int]
    found: tuple[Found, ...]
    slowest_s: float
    most_mib: int
    seconds: int


def case_maker(name: str, attack: Attack, seed: int, models: Sequence[bytes] = ()) -> Callable[[int], bytes]:
    """Makes the bytes of a case of its number, the same whenever it is asked. `models` are mutated, too."""
    seeds = [*attack.seeds(), *(models if attack.of_models else ())]
    bases = [seed for seed in seeds if attack.is_base(seed)]
    return lambda number: attack.mutate(bases, seeds, Random(f"{name} {seed} {number}"))


def judge(attack: Attack, data: bytes) -> str:
    """How one case ended, where it ended well; raises what none may raise."""
    try:
        return attack.attempt(data) or "ran"
    except TexelflowError as error:
        check_line(error)
        return "refused"


def count(name: str, cases: int, seed: int, models: Sequence[bytes] = ()) -> Counts:
    """Every case of one attack, each in a child of its own. This process must have no threads."""
    start, attack = time.perf_counter(), ATTACKS[name]
    make, errors = case_maker(name, attack, seed, models), rich.console.Console(stderr=True)
    outcomes, found, slowest_s, most_bytes = Counter[str](), list[Found](), 0.0, 0
    for number in track(range(cases), name, console=errors, disable=not errors.is_terminal):
        ending = in_child(lambda number=number: judge(attack, make(number)))  # type: ignore[misc]
        outcome = ending.text if ending.how == "text" else ending.how
        outcomes[outcome] += 1
        slowest_s, most_bytes = max(slowest_s, ending.seconds), max(most_bytes, ending.most_bytes)
        if outcome in FOUND:
            found.append(Found(number, ending))
            _keep(f"{name}-{seed}-{number}.bin", make, number)
            print(f"{name} {number}: {outcome}: {ending.text}", file=sys.stderr)
    seconds = round(time.perf_counter() - start)
    return Counts(cases, dict(outcomes), tuple(found), round(slowest_s, 2), most_bytes >> 20, seconds)


def _keep(file_name: str, make: Callable[[int], bytes], number: int) -> None:
    """The bytes of a case, made in a child, since making them may be what went wrong."""
    folder = Path("build", "fuzz")
    folder.mkdir(parents=True, exist_ok=True)
    in_child(lambda: str((folder / file_name).write_bytes(make(number))))


def main() -> int:
    """Run the attacks that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Attack the program with mutated input.")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *ATTACKS], help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--cases", type=int, default=1000, help="of each attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", action="append", default=[], help="a name or a file that is mutated, too")
    parser.add_argument("--folder", type=Path, help="all of its .tflite files are mutated, too")
    parser.add_argument("--only", type=int, metavar="CASE", help="repeat this one case, without a child")
    parser.add_argument("--json", action="store_true", help="print what was counted as JSON, too")
    options = parser.parse_args()
    names = options.names or list(ATTACKS)
    models = [resolve(name).path.read_bytes() for name in options.model]
    models += [path.read_bytes() for path in sorted(options.folder.glob("*.tflite"))] if options.folder else []
    if options.only is not None:
        for name in names:
            print(name, judge(ATTACKS[name], case_maker(name, ATTACKS[name], options.seed, models)(options.only)))
        return 0
    load_interpreter_module()  # before the children, which then need not
    counted = {name: count(name, options.cases, options.seed, models) for name in names}
    console = Console()
    columns = ("attack", "cases", *OUTCOMES, "slowest, s", "memory, MiB", "seconds")
    console.table(f"Attacks, seed {options.seed}", columns, [_row(name, counts) for name, counts in counted.items()])
    if options.json:
        console.json({name: asdict(counts) for name, counts in counted.items()})
    return 1 if any(counts.found for counts in counted.values()) else 0


def _row(name: str, counts: Counts) -> tuple[str, ...]:
    ended = (str(counts.outcomes.get(outcome, 0)) for outcome in OUTCOMES)
    return name, str(counts.cases), *ended, f"{counts.slowest_s:.1f}", str(counts.most_mib), str(counts.seconds)


if __name__ == "__main__":
    sys.exit(main())
