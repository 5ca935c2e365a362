"""Loads the graph of one of a model's signatures, as it is to be computed, and names the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.model.graph import Graph, Hybrid
from texelflow.gpu_delegate.reading.reader import load_model

from ..console import Console


def load_signature(path: Path, name: str | None, console: Console, hybrid: Hybrid = "expanded") -> Graph:
    """The subgraph of a signature, or the first; a note names the others. Raises as load_model."""
    graph = replace(load_model(path, name or 0), hybrid=hybrid)
    if graph.other_signatures:
        own = f"signature {graph.signature}" if graph.signature else "the subgraph without a signature"
        console.note(f"{graph.name}: {own}; --signature NAME for another: {', '.join(graph.other_signatures)}")
    return graph


def signature_figures(graph: Graph) -> dict[str, Any]:
    """The same for JSON; nothing of a model without signatures."""
    if not (graph.signature or graph.other_signatures):
        return {}
    return {"signature": graph.signature or None, "other_signatures": list(graph.other_signatures)}
