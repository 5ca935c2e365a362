"""Prints tables of what the compilers of GPUs that are not here make of the kernels.

    python -m tests.gpu_compilers                            # RADV and, with fake devices, 24 more GPUs
    python -m tests.gpu_compilers --platform tgl --platform radv-navi22 --model selfie --brief
    python -m tests.gpu_compilers --model net.tflite --model FOLDER --brief     # files, and all those of a folder
    python -m tests.gpu_compilers --json before.json         # then change something, and
    python -m tests.gpu_compilers --against before.json --brief

TEXELFLOW_GPU_COMPILERS=DIR names the folder of Mesa's drivers over fake devices. Nothing is executed.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from texelflow.gpu_delegate.base.errors import TexelflowError, UsageError
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.model.layout import Precision

from .compilers import PREFIX, Report, kernels_of, measure, prefix_of
from .document import DOCUMENT, write_document
from .glslang import VALIDATOR, validate
from .kernels import MODELS, graph_of, models_in, texts_for_es, texts_of
from .platforms import PLATFORMS
from .records import KEPT, TABLE, Table, merged, read_table, table_of, write_table
from .tables import AGAINST_HEAD, HEAD, ROW_HEAD, against_cells, lines_of_table, row_cells, sum_cells, words_of

MOST_COMPLAINTS = 10


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.gpu_compilers", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    found.add_argument("--platform", action="append", choices=PLATFORMS, metavar="NAME", help=", ".join(PLATFORMS))
    found.add_argument("--model", action="append", metavar="MODEL",
                       help=f"a name, a .tflite file or a folder of them; default: {', '.join(MODELS)}")  # fmt: skip
    found.add_argument(
        "--family",
        choices=TUNINGS,
        metavar="NAME",
        help="kernels with the tuning of this family instead of each platform's own",
    )
    found.add_argument("--precision", choices=get_args(Precision), default="fp32")
    found.add_argument("--gles", action="store_true", help="OpenGL ES 3.1 on every platform")
    found.add_argument("--brief", action="store_true", help="sums alone")
    found.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    found.add_argument("--against", type=Path, metavar="FILE", help="figures kept before, to compare with")
    found.add_argument("--write", action="store_true", help=f"renew {TABLE} and {DOCUMENT}")
    found.add_argument("--jobs", type=int, default=2, help="processes at once")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    prefix, models = prefix_of(), readable(options.model or MODELS)
    names = options.platform or [name for name, each in PLATFORMS.items() if prefix or not each.shim]
    if prefix is None and any(PLATFORMS[name].shim for name in names):
        print(f"{PREFIX} does not name a folder of fake devices", file=sys.stderr)
        return 2
    if not models:
        return 2
    make = kernels_of(models, options.precision, options.family)
    with ThreadPoolExecutor(options.jobs) as pool:
        reports = list(pool.map(lambda name: measure(name, prefix, make, gles=options.gles), names))
    families = [options.family] if options.family else sorted({PLATFORMS[name].family for name in names})
    print_complaints(models, families)
    if not options.brief:
        for report in reports:
            print_rows(report)
    print_sums(reports)
    if options.json:
        write_table(table_of(reports), options.json)
    if options.write:
        write(reports, everywhere=prefix is not None)
    if options.against:
        print_differences(read_table(options.against), table_of(reports))
    return 0


def readable(places: Sequence[str]) -> tuple[str, ...]:
    """The models that are named, or are in folders; what cannot be read is told instead."""
    found = list[str]()
    for place in places:
        try:
            models = models_in(place)
        except UsageError as error:
            print(error, file=sys.stderr)
            continue
        for model in models:
            try:
                graph_of(model)
            except (TexelflowError, OSError) as error:
                print(f"{model} is left out: {error}", file=sys.stderr)
            else:
                found.append(model)
    return tuple(dict.fromkeys(found))


def write(reports: Sequence[Report], everywhere: bool) -> None:
    """Renew the table that tests compare with and, if all platforms are here, the document."""
    kept = [report for report in reports if report.platform in KEPT]
    write_table(merged(read_table(TABLE) if TABLE.exists() else {}, table_of(kept)), TABLE)
    if everywhere:
        write_document(reports)


def print_complaints(models: Sequence[str], families: Sequence[str]) -> None:
    """What the reference compiler says of the kernels in both languages."""
    if shutil.which(VALIDATOR) is None:
        print(f"{VALIDATOR} is not installed")
        return
    for language, texts in (("OpenGL 4.30", texts_of), ("OpenGL ES 3.10", texts_for_es)):
        sources = {("comp", text) for family in families for text in texts(models, family)}
        with tempfile.TemporaryDirectory() as folder:
            complaints = validate(sources, Path(folder))
        print(f"{VALIDATOR}: {len(sources)} kernels in {language}, {len(complaints) or 'no'} complaints")
        print("\n".join(complaints[:MOST_COMPLAINTS]), end="")


def print_rows(report: Report) -> None:
    """All dispatches of a platform."""
    for model, rows in report.rows.items():
        print(f"\n{words_of(report.platform)}, {report.renderer}: {model}")
        print("\n".join(lines_of_table(ROW_HEAD, map(row_cells, rows))))


def print_sums(reports: Sequence[Report]) -> None:
    """A line for each platform and model, and what went wrong."""
    print()
    print("\n".join(lines_of_table(HEAD, [sum_cells(r.platform, model, rows) for r in reports
                                           for model, rows in r.rows.items()])))  # fmt: skip
    for report in reports:
        for problem in (*report.problems, *failures(report)):
            print(f"{report.platform}: {problem}")


def print_differences(before: Table, now: Table) -> None:
    """A line for each platform and model that both tables have, of the same version of Mesa."""
    lines = [
        against_cells(platform, model, before[mesa][platform][model], costs)
        for mesa, platforms in now.items()
        for platform, models in platforms.items()
        for model, costs in models.items()
        if model in before.get(mesa, {}).get(platform, {})
    ]
    print()
    print("\n".join(lines_of_table(AGAINST_HEAD, lines)))


def failures(report: Report) -> list[str]:
    """Each complaint about kernels once, with the first that it is about."""
    about: dict[str, list[str]] = {}
    for model, rows in report.rows.items():
        for row in rows:
            if row.problem:
                about.setdefault(row.problem, []).append(f"{model} {row.dispatch.number} {row.dispatch.name}")
    return [f"{', '.join(found[:3])} ({len(found)} kernels): {problem}" for problem, found in about.items()]


if __name__ == "__main__":
    sys.exit(main())
