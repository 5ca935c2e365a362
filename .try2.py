import numpy as np,sys
from tests.engine import on_cpu, DEVICES, on_gpu, worst
from tests.op_cases import CASES
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.context import open_context
case=next(c for c in CASES if sys.argv[1] in c.name)
g=read_model(case.model()); ins=case.inputs([g.tensors[t].shape for t in g.inputs])
want=on_cpu(case.model(),ins)
ctx=open_context()
c=compile_graph(g,DEVICES["software"])
got=on_gpu(ctx,c,ins)
for i,(a,b) in enumerate(zip(got,want)):
    e=worst([a],[b])
    print(i,b.shape,e)
    if e>1e-4: print(np.abs(a.reshape(b.shape)-b).max(axis=tuple(range(b.ndim-1)))); print(np.abs(a.reshape(b.shape)-b).max(axis=-1))
for k in c.kernels: print(k.name,k.tile)
if len(sys.argv)>2: print(c.kernels[int(sys.argv[2])].source)
