"""The names of attacks, a number of cases and a seed go in; a table of what became of them comes out.

    python -m tests.fuzz --cases 2000              # every attack
    python -m tests.fuzz recordings --seed 7       # one; --only 123 repeats its case 123 in this process

Exit code 1 if anything was found: a defect, a crash, a hang, memory without bound.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import rich.console
from rich.progress import track

from app.console import Console
from tests.fuzz.attacks import ATTACKS, Attack
from tests.fuzz.children import FINDINGS, OUTCOMES, Result, run_cases
from tests.fuzz.mutate import mutated


def case_maker(name: str, attack: Attack, seed: int) -> Callable[[int], bytes]:
    """Makes the bytes of a case of its number, the same whenever it is asked."""
    seeds = attack.seeds()
    return lambda number: mutated(seeds, random.Random(f"{name} {seed} {number}"))


def run_attack(name: str, cases: int, seed: int) -> list[Result]:
    """Every case of one attack; the bytes of those that found something are kept in build/fuzz."""
    attack = ATTACKS[name]
    make, results = case_maker(name, attack, seed), []
    done = run_cases(attack.attempt, make, cases)
    errors = rich.console.Console(stderr=True)
    for result in track(done, name, cases, console=errors, disable=not errors.is_terminal):
        results.append(result)
        if result.outcome in FINDINGS:
            folder = Path("build", "fuzz")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}-{seed}-{result.number}.bin").write_bytes(make(result.number))
            print(f"{name} {result.number}: {result.outcome}: {result.detail}", file=sys.stderr)
    return results


def count_attack(name: str, cases: int, seed: int) -> dict[str, int]:
    """How many cases of one attack had which outcome, and how many seconds they took."""
    start = time.perf_counter()
    counts = Counter(result.outcome for result in run_attack(name, cases, seed))
    took_s = round(time.perf_counter() - start)
    return {"cases": cases, **{outcome: counts[outcome] for outcome in OUTCOMES}, "seconds": took_s}


def main() -> int:
    """Run the attacks that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Attack the program with mutated input.")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *ATTACKS], help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--cases", type=int, default=1000, help="of each attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="CASE", help="repeat this one case, without a child")
    parser.add_argument("--json", action="store_true", help="print what was counted as JSON, too")
    options = parser.parse_args()
    names = options.names or list(ATTACKS)
    if options.only is not None:
        for name in names:
            ATTACKS[name].attempt(case_maker(name, ATTACKS[name], options.seed)(options.only))
        return 0
    counted = {name: count_attack(name, options.cases, options.seed) for name in names}
    console = Console()
    rows = [(name, *map(str, counts.values())) for name, counts in counted.items()]
    console.table(f"Attacks, seed {options.seed}", ("attack", "cases", *OUTCOMES, "seconds"), rows)
    if options.json:
        console.json(counted)
    return 1 if any(counts[outcome] for counts in counted.values() for outcome in FINDINGS) else 0


if __name__ == "__main__":
    sys.exit(main())
