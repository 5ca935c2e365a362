import sys, time, numpy as np
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.device import SOFTWARE
from texelflow.gpu_delegate.partition import partition_graph
from texelflow.gpu_delegate.refusals import find_refusals
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.runtime import Program
from texelflow.gpu_delegate.context import open_context
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.app.models.mobilebert import WORDS
from tests.engine import worst

v = open(sys.argv[1], "rb").read()
g = read_model(v)
r = find_refusals(g, SOFTWARE)
print("partitions", len(partition_graph(g, r.reasons, r.constants)), len(g.nodes))
words = (np.arange(WORDS, dtype=np.int32) * 37 % 30522)[None]
mask = np.ones((1, WORDS), np.int32)
mask[0, 300:] = 0
seg = (np.arange(WORDS, dtype=np.int32) % 2)[None]
ins = [words, mask, seg]
mod = load_interpreter_module()
i = mod.Interpreter(model_content=v, num_threads=2)
i.allocate_tensors()
for d, x in zip(i.get_input_details(), ins):
    i.set_tensor(d["index"], x)
ts = []
for _ in range(5):
    a = time.perf_counter()
    i.invoke()
    ts.append(time.perf_counter() - a)
want = [i.get_tensor(d["index"]) for d in i.get_output_details()]
print("tflite 2 threads", min(ts))
ctx = open_context()
a = time.time()
c = compile_graph(g, SOFTWARE)
print("compiled", time.time() - a, len(c.kernels), "kernels")
with Program(ctx, c) as p:
    print("made", time.time() - a)
    for t, x in zip(g.inputs, ins):
        p.write(t, x)
    ts = []
    for _ in range(5):
        a = time.perf_counter()
        p.run()
        got = [p.read(t) for t in g.outputs]
        ts.append(time.perf_counter() - a)
    print("GL", min(ts), "error", worst(got, want), [float(np.abs(w).max()) for w in want])
