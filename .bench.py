import time, numpy as np, sys
from tests.sketch import Sketch
from tests.engine import DEVICES
from tests.native import native_networks
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.runtime import Program
from texelflow.gpu_delegate.context import open_context
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from tests.contraction_cases import _attention, _matmul


def model(f):
    m = Sketch(0)
    m.output(f(m))
    return m.build()


M = {
    "QK^T 4x128x32x128": model(lambda m: _matmul(m, m.input((1, 4, 128, 32)), m.input((1, 4, 128, 32)), adj_y=True)),
    "PV 4x128x128x32": model(lambda m: _matmul(m, m.input((1, 4, 128, 128)), m.input((1, 4, 128, 32)))),
    "attention": model(lambda m: _attention(m, 4, 128, 32)),
    "matmul 384x128x512": model(lambda m: _matmul(m, m.input((384, 128)), m.input((128, 512)))),
    "odd 3x197x64x197": model(lambda m: _matmul(m, m.input((3, 197, 64)), m.input((3, 197, 64)), adj_y=True)),
}
ctx = open_context()


def best(f, n=30):
    f()
    f()
    ts = []
    for _ in range(n):
        a = time.perf_counter()
        f()
        ts.append(time.perf_counter() - a)
    return f"{1e3 * min(ts):7.3f} ms (median {1e3 * sorted(ts)[n // 2]:7.3f})"


mod = load_interpreter_module()
nets = native_networks({k: read_model(v) for k, v in M.items()})
for k, v in M.items():
    g = read_model(v)
    rng = np.random.default_rng(0)
    ins = [rng.uniform(-1, 1, g.tensors[t].shape).astype(np.float32) for t in g.inputs]
    with Program(ctx, compile_graph(g, DEVICES["software"])) as p:
        for t, x in zip(g.inputs, ins):
            p.write(t, x)

        def run():
            p.run()
            ctx.mgl.finish() if hasattr(ctx, "mgl") else p.finish()

        print(
            k, "GL    ", best(run), [(x.name, x.tile.rows, x.tile.z_slices, x.tile.local) for x in p.compiled.kernels]
        )
    n = nets[k]
    n.run(ins)
    print(k, "native", best(lambda: n.run(ins)), [(x.name, x.tile.rows, x.tile.z_slices) for x in n.compiled.kernels])
    for threads in (1, 2):
        for kind in ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            i = mod.Interpreter(
                model_content=v, num_threads=threads, experimental_op_resolver_type=getattr(mod.OpResolverType, kind)
            )
            i.allocate_tensors()
            for d, x in zip(i.get_input_details(), ins):
                i.set_tensor(d["index"], x)
            print(k, "tflite", threads, kind[:7], best(i.invoke))
