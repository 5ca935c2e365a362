"""The ordered list of all graph passes, and what runs them.

PASSES is the one ordered list. Each pass is a pure function Graph -> (Graph, Outcome); an Outcome says how often the
pass applied and, where it was declined, why. Programs of one dispatch per op go without those that are `fused_only`.
"""

from dataclasses import dataclass

from ..base import debug
from ..base.errors import ModelError
from ..model.graph import Graph
from ..model.rewrite import Pass, runs_unfused
from .algebra import distribute_mean, hoist_convolution, mean_before_resize
from .basic_lstm import express_lstm
from .convolutions import (
    connected_to_convolution,
    elementwise_before_depth_to_space,
    expand_depthwise_multiplier,
    merge_pad,
    pool_to_mean,
    split_activations,
    transpose_convolution_to_depth,
)
from .custom_ops import express_custom_ops
from .decomposition import (
    decompose_normalizations,
    split_concatenations,
    split_reductions,
    split_sums,
    split_to_slices,
    split_top,
    unify_moves,
)
from .extrema import share_long_extrema
from .faults import flag_faults
from .filters_over_time import express_svdf
from .folding import fold_constants
from .grouped import expand_grouped_convolution
from .high_ranks import merge_dimensions
from .hybrid_products import hybrid_to_steps
from .inlining import inline_bodies
from .kept_states import express_states
from .landmark_ops import express_landmark_ops
from .lookups import express_lookups
from .merging import merge_following_arithmetic, merge_preceding_arithmetic
from .narrow_products import narrow_products
from .padding import dilate_convolutions, pad_from_concatenation
from .products import express_products, separate_computed_weights
from .ranks import align_ranks
from .recurrence import express_recurrence
from .running_sums import expand_running_sums
from .simplify import drop_unused, join_moves, remove_identities
from .spectra import express_spectra
from .steps import quantized_to_steps
from .verification import verify
from .wide_integers import split_wide_integers

PASSES: tuple[Pass, ...] = (
    inline_bodies,
    express_spectra,
    express_states,
    flag_faults,
    hybrid_to_steps,
    quantized_to_steps,
    express_lstm,
    express_recurrence,
    express_svdf,
    split_to_slices,
    unify_moves,
    express_custom_ops,
    express_landmark_ops,
    express_lookups,
    fold_constants,
    split_wide_integers,
    split_top,
    express_products,
    separate_computed_weights,
    decompose_normalizations,
    expand_running_sums,
    split_sums,
    split_concatenations,
    merge_dimensions,
    join_moves,
    pad_from_concatenation,
    dilate_convolutions,
    merge_pad,
    merge_following_arithmetic,
    merge_preceding_arithmetic,
    split_activations,
    align_ranks,
    share_long_extrema,
    split_reductions,
    remove_identities,
    expand_depthwise_multiplier,
    expand_grouped_convolution,
    connected_to_convolution,
    pool_to_mean,
    transpose_convolution_to_depth,
    elementwise_before_depth_to_space,
    hoist_convolution,
    distribute_mean,
    mean_before_resize,
    drop_unused,
    narrow_products,
)


@dataclass(frozen=True)
class PassReport:
    """What one pass did to the graph."""

    name: str
    summary: str  # the first line of its docstring
    applied: int
    declined: tuple[str, ...]
    nodes_after: int
    removed: tuple[int, ...] = ()  # operators of the file of which no node is left since this pass


def passes_for(fuse: bool) -> tuple[Pass, ...]:
    """The passes of programs with ops fused, or of one dispatch per op."""
    return tuple(step for step in PASSES if fuse or runs_unfused(step))


def run_passes(graph: Graph, passes: tuple[Pass, ...] = PASSES) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run passes in order; returns the last graph and a report for each.

    With DEBUG=1 the graph is verified in between: RuntimeError names the pass that broke it, ModelError is about the
    graph that was given.
    """
    verifies, reports = is_verifying(), []
    if verifies:
        verify(graph)
    operators = _operators(graph)
    for step in passes:
        before = graph
        graph, outcome = step(before)
        if verifies and graph is not before:
            _verify_after(step, graph)
        summary = (step.__doc__ or "").partition("\n")[0].strip()
        left = operators if graph is before else _operators(graph)
        removed, operators = tuple(sorted(operators - left)), left
        reports.append(PassReport(step.__name__, summary, outcome.applied, outcome.declined, len(graph.nodes), removed))
    return graph, tuple(reports)


def _operators(graph: Graph) -> frozenset[int]:
    """The operators of the file that nodes stand for."""
    return frozenset(node.index for node in graph.nodes if node.index >= 0)


def is_verifying() -> bool:
    """Whether graphs are verified between passes."""
    return debug.level() >= debug.RUN


def _verify_after(step: Pass, graph: Graph) -> None:
    try:
        verify(graph)
    except ModelError as error:
        raise RuntimeError(f"pass {step.__name__} broke the graph: {error}") from error
