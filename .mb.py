import sys, time, numpy as np
from texelflow.app.models.drawing import Network
from texelflow.app.models.mobilebert import mobilebert, WORDS
from texelflow.gpu_delegate.cpu.writer import write_model
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.device import SOFTWARE, HARDWARE
from texelflow.gpu_delegate.refusals import find_refusals
from texelflow.gpu_delegate.program import compile_graph
import inspect

print(inspect.signature(Network))
blocks = int(sys.argv[1])
net = Network(np.random.default_rng(0)) if "rng" in str(inspect.signature(Network)) else Network()
mobilebert(net, blocks=blocks)
g = net.graph("mobilebert")
for d in (SOFTWARE, HARDWARE):
    r = find_refusals(g, d)
    print("refused", len(r.reasons), set(r.reasons.values()))
    a = time.time()
    c = compile_graph(g, d)
    print(
        "kernels",
        len(c.kernels),
        "nodes",
        len(g.nodes),
        time.time() - a,
        "source",
        sum(len(k.source) for k in c.kernels),
        len({k.source for k in c.kernels}),
    )
open(f"/tmp/mb{blocks}.tflite", "wb").write(write_model(g))
