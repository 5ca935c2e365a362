import numpy as np
from tests.sketch import Sketch
from tests.engine import DEVICES, on_cpu, on_gpu, worst
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.context import open_context
from texelflow.gpu_delegate.program import compile_graph
from tests.native import native_networks

ctx = open_context()


def lstm(m, b, n_in, n, const=True):
    x, h, c = m.input((b, n_in)), m.input((b, n)), m.input((b, n))
    w, bias = (m.random(4 * n, n_in + n), m.random(4 * n)) if const else (m.input((4 * n, n_in + n)), m.input((4 * n,)))
    return m.split(
        "LSTM",
        [x, h, w, bias, c],
        [(b, n), (b, n), (b, n_in + n), (b, 4 * n)],
        kernel_type=1,
        activation="TANH",
        table="LSTMOptions",
    )


for b, i, n, c in ((1, 3, 4, True), (3, 5, 3, True), (1, 7, 13, True), (2, 3, 5, False), (1, 16, 4, True)):
    for outs in (2, 4):
        m = Sketch(0)
        m.output(*lstm(m, b, i, n, c)[:outs])
        v = m.build()
        g = read_model(v)
        rng = np.random.default_rng(1)
        ins = [rng.uniform(-1, 1, g.tensors[t].shape).astype(np.float32) for t in g.inputs]
        want = on_cpu(v, [x.copy() for x in ins])
        for d in ("software", "hardware"):
            cg = compile_graph(g, DEVICES[d])
            e = worst(on_gpu(ctx, cg, ins), want)
            print(b, i, n, c, outs, d, e, [k.name for k in cg.kernels])
        print(worst(native_networks({0: g})[0].run(ins), want))
