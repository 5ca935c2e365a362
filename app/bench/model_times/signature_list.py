"""Lists the signatures of a model: their names, and what each takes and gives."""

from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.reading.reader import load_model

from ...console import Console
from .model_bench import model_file
from .model_options import ModelBench


def list_signatures(options: ModelBench, console: Console, json: bool) -> int:
    """A row for each; of a model that names none, that. Raises as load_model."""
    with model_file(options, console) as path:
        first = load_model(path)
        names = tuple(name for name in (first.signature, *first.other_signatures) if name)
        graphs = [load_model(path, name) for name in names]
    rows = [
        {
            "signature": graph.signature,
            "inputs": [_shown(graph, index) for index in graph.inputs],
            "outputs": [_shown(graph, index) for index in graph.outputs],
        }
        for graph in graphs
    ]
    if json:
        console.json({"model": first.name, "signatures": rows})
    elif rows:
        cells = [(row["signature"], ", ".join(row["inputs"]), ", ".join(row["outputs"])) for row in rows]
        console.table(f"Signatures of {first.name}", ("signature", "inputs", "outputs"), cells)
    else:
        console.say(f"{first.name} has no signatures")
    return 0


def _shown(graph: Graph, index: int) -> str:
    tensor: Tensor = graph.tensors[index]
    return f"{tensor.name} {tensor.dtype} {'x'.join(map(str, tensor.shape))}"
