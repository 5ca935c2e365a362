"""Options of `bench model` by all their names: what they ask for, and what is said where they contradict."""

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import one_in
from texelflow.app.bench.measuring.run_rule import RunRule
from texelflow.app.bench.model_times.meaningless_flags import MEANINGLESS
from texelflow.app.bench.model_times.model_aliases import ALIASES, as_declared
from texelflow.app.bench.model_times.model_inputs import InputLayer
from texelflow.app.bench.model_times.model_options import ModelBench, parse_options

MEANT: list[tuple[str, str, Any]] = [  # an alias, what it asks for, by the name of the field
    ("--graph=a.tflite", "model", "a.tflite"),
    ("--signature_to_run_for=sum", "signature", "sum"),
    ("--num_runs=7", "runs", RunRule(7, 0.0, 150.0)),
    ("--min_secs=1.5", "runs", RunRule(100, 1.5, 150.0)),
    ("--max_secs=2", "runs", RunRule(100, 0.0, 2.0)),
    ("--max_secs=2", "warmup", RunRule(10, 0.0, 2.0)),
    ("--warmup_runs=0", "warmup", RunRule(0, 0.0, 150.0)),
    ("--warmup_min_secs=0.5", "warmup", RunRule(10, 0.5, 150.0)),
    ("--use_gpu=true", "backend", "delegate"),
    ("--use_gpu=1", "backend", "delegate"),
    ("--use_gpu=false", "backend", "cpu"),
    ("--use_gpu=false --num_threads=3", "threads", 3),
    ("--use_gpu=false --num_threads=-1", "threads", None),
    ("--use_gpu=true --num_threads=2", "threads", 2),
    ("--gpu_precision_loss_allowed=true", "compiling.precision", "fp16"),
    ("--gpu_precision_loss_allowed=false", "compiling.precision", "fp32"),
    ("--use_gpu=true --gpu_precision_loss_allowed=true", "compiling.precision", "fp16"),
    ("--gpu_experimental_enable_quant=false", "delegate", {"experimental_flags": ()}),
    ("--gpu_experimental_enable_quant=true", "delegate", {"experimental_flags": ("enable_quant",)}),
    ("--gpu_inference_for_sustained_speed=true", "delegate", {"inference_preference": "sustained_speed"}),
    ("--gpu_backend=gl", "backend", "delegate"),
    ("--gpu_wait_type=active", "delegate", {"wait_type": "active"}),
    ("--gpu_wait_type=do_not_wait", "delegate", {"wait_type": "do-not-wait"}),
    ("--max_delegated_partitions=3", "delegate", {"max_delegated_partitions": 3}),
    ("--max_delegated_partitions=0", "delegate", {}),
    ("--min_nodes_per_partition=1", "delegate", {"min_nodes_per_partition": 1}),
    (
        "--delegate_serialize_dir=kept --delegate_serialize_token=own",
        "delegate",
        {
            "serialization_dir": "kept",
            "model_token": "own",
            "experimental_flags": ("enable_quant", "enable_serialization"),
        },
    ),
    ("--delegate_serialize_token=own", "delegate", {"model_token": "own"}),
    ("--list_signatures=true", "list_signatures", True),
    ("--input_layer=x --input_layer_shape=1,2", "inputs.layers", (InputLayer("x", (1, 2)),)),
    (
        "--input_layer=x,y:0 --input_layer_shape=1,2:3 --input_layer_value_range=x,-1,4 "
        "--input_layer_value_files=y::0:a",
        "inputs.layers",
        (InputLayer("x", (1, 2), (-1, 4)), InputLayer("y:0", (3,), None, Path("a"))),
    ),
    ("--run_delay=0.5", "runs", RunRule(100, 0.0, 150.0, 0.5)),
    ("--run_delay=-1.0", "warmup", RunRule(10, 0.0, 150.0)),
    ("--run_frequency=30", "warmup", RunRule(10, 0.0, 150.0, 0.0, 30.0)),
    ("--run_frequency=-1", "runs", RunRule(100, 0.0, 150.0)),
    ("--use_xnnpack=true", "backend", "cpu"),
    ("--use_xnnpack=false", "xnnpack", False),
    ("--use_xnnpack=false --use_gpu=true", "backend", "delegate"),
    ("--require_full_delegation=true", "full_delegation", True),
    ("--allow_fp16=true", "compiling.precision", "fp16"),
    ("--allow_fp16=false --gpu_precision_loss_allowed=true", "compiling.precision", "fp16"),
    ("--enable_op_profiling=true", "per_op", True),
    ("--enable_op_profiling=1 --profiling_output_csv_file=a.csv", "profile_csv", Path("a.csv")),
    ("--enable_op_profiling=1 --op_profiling_output_file=a.csv --op_profiling_output_mode=csv", "backend", "gl"),
    ("--report_peak_memory_footprint=true", "memory_interval_ms", 50),
    ("--report_peak_memory_footprint=true --memory_footprint_check_interval_ms=7", "memory_interval_ms", 7),
    ("--dry_run=true", "dry_run", True),
    ("--verbose=true", "verbose", True),
    ("--print_preinvoke_state=true", "states", (True, False)),
    ("--print_postinvoke_state=true", "states", (False, True)),
    ("--output_filepath=a", "outputs", Path("a")),
    (
        "--export_model_runtime_info=true --model_runtime_info_output_file=a.json",
        "runtime_info",
        Path("a.json"),
    ),
    ("--benchmark_name=mine", "name", "mine"),
    ("--enable_op_profiling=false --use_gpu=false", "per_op", False),
]

WRONG = [  # arguments of `bench model`, and what is said
    ("--num_runs=5 --runs 6", "--runs 6 and --num_runs=5 contradict each other"),
    ("--graph=other.tflite", "MODEL selfie and --graph=other.tflite contradict each other"),
    ("--backend gl --use_gpu=false", "--backend gl and --use_gpu=false contradict each other"),
    ("--backend cpu --use_gpu=true", "--backend cpu and --use_gpu=true contradict each other"),
    ("--backend metal", "--backend metal: gl, cpu or delegate is needed"),
    ("--num_runs=0", "--num_runs=0: a whole number from 1 on is needed"),
    ("--num_runs=many", "--num_runs=many: a whole number"),
    ("--num_runs=--5", "--num_runs=--5: a whole number"),
    ("--num_runs=99999999999", "it goes from 1 to"),
    ("--num_runs=" + "9" * 5000, "a whole number"),
    ("--runs 0", "--runs 0: it goes from 1"),
    ("--warmup -1", "--warmup -1: it goes from 0"),
    ("--min_secs=nan", "--min_secs=nan: seconds from 0"),
    ("--max_secs=inf", "--max_secs=inf: seconds from 0"),
    ("--min_secs=5 --max_secs=2", "--min_secs=5 is more than --max_secs=2"),
    ("--use_gpu=maybe", "--use_gpu=maybe: true or false is needed"),
    ("--gpu_backend=cl", "--gpu_backend=cl: gl"),
    ("--gpu_wait_type=spin", "passive, active, do_not_wait or aggressive"),
    ("--gpu_wait_type=active --backend gl", "--gpu_wait_type=active is for --backend delegate, not for gl"),
    ("--max_delegated_partitions=2 --use_gpu=false", "is for --backend delegate, not for cpu"),
    ("--gpu_experimental_enable_quant=false --backend gl", "is for --backend delegate, not for gl"),
    ("--threads 2", "--threads is for the CPU: add --backend cpu"),
    ("--num_threads=2", "--num_threads=2 is for the CPU: add --backend cpu"),
    ("--threads 2 --backend gl", "--threads is for --backend cpu or delegate, not for gl"),
    ("--threads 0 --backend cpu", "--threads 0: it goes from 1"),
    ("--per-op --backend cpu", "--per-op: TensorFlow Lite tells Python no times of single operators"),
    ("--per-op --backend delegate", "--per-op is for --backend gl, not for delegate"),
    ("--unfused --use_gpu=true", "--unfused is for --backend gl, not for delegate"),
    ("--precision fp16 --backend cpu", "--precision fp16 is for --backend gl or delegate, not for cpu"),
    ("--memory naive --backend delegate", "--memory is for --backend gl, not for delegate"),
    ("--memory pool", "--memory pool: one of arena, objects, naive is needed"),
    ("--planner best-fit", "--planner best-fit: one of naive, "),
    ("--precision fp8", "one of fp32, fp16, fp16-arithmetic, bf16 is needed"),
    ("--precision bf16 --backend gl", "--precision bf16 is for --backend cpu, not for gl"),
    ("--precision bf16", "--precision bf16 is for the CPU's own code: add --cpu native"),
    ("--hybrid int8", "--hybrid int8: one of expanded, reference is needed"),
    ("--hybrid reference --cpu tflite", "add --cpu native"),
    ("--compile-budget -1", "--compile-budget"),
    ("--duration 0", "--duration 0: seconds"),
    ("--duration nan", "--duration nan: seconds"),
    ("--duration 3 --runs 5", "--duration 3 and --runs contradict each other"),
    ("--duration 3 --min_secs=5", "--duration 3 and --min_secs=5 contradict each other"),
    ("--plot a.png", "add --duration SECONDS"),
    ("--input_layer_shape=1,2", "--input_layer_shape speaks of inputs by name: add --input_layer=NAME,NAME"),
    ("--input_layer=x", "--input_layer_shape=: as many shapes are needed (1)"),
    (
        "--input_layer=x,x --input_layer_shape=1:1",
        "--input_layer=x,x: names with commas between them are needed",
    ),
    ("--input_layer=x,y --input_layer_shape=1,2", "--input_layer_shape=1,2: as many shapes are needed (2)"),
    ("--input_layer=x --input_layer_shape=1,-1", "--input_layer_shape=1,-1: whole numbers from 1"),
    ("--input_layer=x --input_layer_shape=1,99999999999", "whole numbers from 1"),
    ("--input_layer=x --input_layer_shape=" + "1," * 4000 + "1", "whole numbers from 1"),
    ("--input_layer=x --input_layer_shape=1 --input_layer_value_range=y,0,1", "names of --input_layer are needed (x)"),
    ("--input_layer=x --input_layer_shape=1 --input_layer_value_range=x,2,1", "NAME,LOW,HIGH"),
    ("--input_layer=x --input_layer_shape=1 --input_layer_value_range=x,a", "NAME,LOW,HIGH"),
    ("--input_layer=x --input_layer_shape=1 --input_layer_value_files=x", "NAME:FILE"),
    ("--input_layer=x --input_layer_shape=1 --input_layer_value_files=y:a", "names of --input_layer are needed (x)"),
    ("--input_layer=x,y --input_layer_shape=1:1", "--input_layer names 2 inputs, and"),
    ("--run_delay=soon", "--run_delay=soon: seconds from 0"),
    ("--run_frequency=nan", "--run_frequency=nan: runs in a second"),
    ("--use_xnnpack=true --backend gl", "--use_xnnpack=true is for --backend cpu or delegate, not for gl"),
    ("--use_xnnpack=true --cpu native", "--use_xnnpack=true is for TensorFlow Lite"),
    ("--require_full_delegation --use_gpu=false", "TensorFlow Lite runs the model"),
    ("--profiling_output_csv_file=a.csv", "says nothing alone: add --enable_op_profiling=true"),
    ("--enable_op_profiling --profiling_output_csv_file=a.txt", "its name must end in .csv"),
    (
        "--enable_op_profiling --op_profiling_output_file=a.csv --op_profiling_output_mode=stdout",
        "contradict each other",
    ),
    ("--enable_op_profiling --op_profiling_output_mode=proto", "stdout or csv is needed"),
    ("--memory_footprint_check_interval_ms=5", "add --report_peak_memory_footprint=true"),
    ("--report_peak_memory_footprint --memory_footprint_check_interval_ms=0", "a whole number from 1 on is needed"),
    ("--dry_run --enable_op_profiling", "--dry_run=true runs nothing"),
    ("--export_model_runtime_info", "add --model_runtime_info_output_file"),
    ("--output_filepath=", "--output_filepath=: a name is needed"),
    ("--use_nnapi", "--use_nnapi=true has no meaning here: NNAPI is Android's"),
    ("--external-delegate-path=lib.so", "no delegates but ours"),
]


def parsed(texts: str) -> ModelBench:
    found = dict(re.findall(r"--(\w+)=(\S+)", texts))
    assert len(found) == len(texts.split())
    return parse_options({}, found)


@pytest.mark.parametrize(("texts", "name", "value"), MEANT)
def test_flags_of_benchmark_model_mean_options_of_ours(texts: str, name: str, value: Any) -> None:
    assert attrgetter(name)(parsed(texts)) == value


def test_every_flag_is_tried() -> None:
    assert {alias.name for alias in ALIASES} == {name for texts, *_ in MEANT for name in re.findall(r"--(\w+)=", texts)}


def test_a_flag_may_repeat_what_an_option_says() -> None:
    assert parse_options({"runs": 5, "backend": "gl"}, {"num_runs": "5", "use_gpu": "true"}) == parse_options(
        {"runs": 5, "backend": "gl"}, {}
    )


def test_without_options_the_protocol_is_that_of_the_paper() -> None:
    assert (parse_options({}, {}).warmup.runs, parse_options({}, {}).runs.runs) == (10, 100)


@one_in(4, ("arguments", "complaint"), WRONG)
def test_bad_and_contradicting_options_end_in_one_line(
    arguments: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Command(capsys)("bench", "model", "selfie", *arguments.split()).complaint
    assert complaint in said
    assert len(said) < 300


def test_help_names_the_flags_of_benchmark_model(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Command(capsys)("bench", "model", "--help").out
    assert all(f"--{alias.name[:20]}" in shown for alias in ALIASES)


@pytest.mark.parametrize(
    ("arguments", "declared"),
    [
        ("--num-runs=5", "--num_runs=5"),
        ("--num-runs 5", "--num_runs 5"),
        ("--num_runs 5 m.tflite", "--num_runs 5 m.tflite"),
        ("--dry-run", "--dry_run=true"),
        ("--use-gpu --num_runs 5", "--use_gpu=true --num_runs 5"),
        ("--use_gpu false --dry_run=0", "--use_gpu false --dry_run=0"),
        ("--use_gpu m.tflite", "--use_gpu=true m.tflite"),
        ("--use-nnapi", "--use_nnapi=true"),
        ("--per-op --num -- --num-runs", "--per-op --num -- --num-runs"),
    ],
)
def test_flags_are_taken_with_dashes_and_switches_alone(arguments: str, declared: str) -> None:
    assert list(as_declared(arguments.split())) == declared.split()


def test_what_has_no_meaning_is_passed_over_where_it_asks_for_nothing() -> None:
    options = parse_options({}, {"use_nnapi": "false", "max_profiling_buffer_entries": "4096"})
    assert [note.split()[0] for note in options.notes] == ["--use_nnapi", "--max_profiling_buffer_entries"]
    assert not {alias.name for alias in ALIASES} & {*MEANINGLESS}


def test_the_document_names_every_flag_without_a_meaning_and_why() -> None:
    document = (Path(__file__).parents[4] / "docs" / "bench_model.md").read_text(encoding="utf-8")
    rows = dict(reversed(row) for row in re.findall(r"^\| (`--[^|]+) \| ([^|]+) \|$", document, re.M))
    listed = {name: why for why, flags in rows.items() for name in re.findall(r"`--(\w+)`", flags)}
    assert listed == {name: flag.reason for name, flag in MEANINGLESS.items()}
