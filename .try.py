import sys
import numpy as np
from tests.sketch import Sketch
from tests.engine import on_cpu, DEVICES, on_gpu, worst
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.compile_options import CompileOptions
from texelflow.gpu_delegate.context import open_context
from tests.native import native_networks
def bm(m, xs, ys, ax=False, ay=False, consty=False, constx=False):
    x = m.random(*xs) if constx else m.input(xs); y = m.random(*ys) if consty else m.input(ys)
    a = (xs[-1], xs[-2]) if ax else xs[-2:]; b = (ys[-1], ys[-2]) if ay else ys[-2:]
    out=(*np.broadcast_shapes(xs[:-2],ys[:-2]), a[0], b[1])
    m.output(m.op("BATCH_MATMUL",[x,y],out,adj_x=ax,adj_y=ay))
cases={}
def case(name,f):
    m=Sketch(0); f(m); cases[name]=m.build()
for K in (1,3,4,5,13):
    for N in (1,3,4,5,13):
        case(f"{K} {N}", lambda m: bm(m,(3,7,K),(3,K,N)))
        case(f"{K} {N} adj", lambda m: bm(m,(3,7,K),(3,N,K),ay=True))
case("adjx", lambda m: bm(m,(3,5,7),(3,5,9),ax=True))
case("adjxy", lambda m: bm(m,(2,3,5,7),(2,3,9,5),ax=True,ay=True))
case("bcast", lambda m: bm(m,(2,1,5,7),(1,3,7,9)))
case("bcast2", lambda m: bm(m,(5,7),(2,3,7,9)))
case("bcast3", lambda m: bm(m,(2,3,5,7),(7,9)))
case("const", lambda m: bm(m,(2,3,5,7),(7,9),consty=True))
case("const adj", lambda m: bm(m,(2,3,5,7),(9,7),ay=True,consty=True))
case("const batch", lambda m: bm(m,(2,3,5,7),(2,3,7,9),consty=True))
case("constx", lambda m: bm(m,(2,3,5,7),(2,3,7,9),constx=True))
case("constx2", lambda m: bm(m,(5,7),(2,3,7,9),constx=True))
case("constx vec", lambda m: bm(m,(1,7),(2,3,7,9),constx=True))
case("128", lambda m: bm(m,(1,4,128,32),(1,4,128,32),ay=True))
case("40x33", lambda m: bm(m,(1,2,40,33),(1,2,33,70)))
case("vec", lambda m: bm(m,(1,33),(33,70)))
case("vec1", lambda m: bm(m,(1,1),(1,1)))
def conv(m, size, c, o, k, stride=(1,1), padding="SAME", dilation=(1,1), bias="c", batch=1, groups=1, activation="NONE"):
    from tests.sketch import slid
    x=m.image(*size,c,batch); w=m.input((o,*k,c//groups)); b=m.random(o) if bias=="c" else m.input((o,))
    shape=(batch,*slid(size,k,stride,dilation,padding),o)
    m.output(m.op("CONV_2D",[x,w,b],shape,stride=stride,padding=padding,dilation=dilation,activation=activation))
for c in (1,3,5,13):
    case(f"conv {c}", lambda m: conv(m,(5,7),c,{1:13,3:5,5:3,13:1}[c],(3,3)))
    case(f"conv1 {c}", lambda m: conv(m,(5,7),c,{1:13,3:5,5:3,13:1}[c],(1,1),bias="r",batch=3,activation="RELU"))
case("conv stride", lambda m: conv(m,(9,8),5,70,(3,2),stride=(2,1),dilation=(2,2),padding="VALID") if False else conv(m,(9,8),5,70,(3,2),stride=(2,1)))
case("conv groups", lambda m: conv(m,(9,8),6,9,(3,2),groups=3,bias="r",activation="RELU6"))
def dw(m,size,c,k,mult=1,stride=(1,1),padding="SAME",batch=1):
    from tests.sketch import slid
    x=m.image(*size,c,batch); w=m.input((1,*k,c*mult)); b=m.input((c*mult,))
    shape=(batch,*slid(size,k,stride,(1,1),padding),c*mult)
    m.output(m.op("DEPTHWISE_CONV_2D",[x,w,b],shape,stride=stride,padding=padding,dilation=(1,1),depth_multiplier=mult,activation="RELU"))
for c in (1,3,5,13): case(f"dw {c}", lambda m: dw(m,(5,7),c,(3,3),batch=3))
case("dw mult", lambda m: dw(m,(5,7),5,(3,3),3,stride=(2,2)))
def tr(m,size,c,o,k,stride,padding="SAME",bias="r",constw=False):
    x=m.image(*size,c); w=m.random(o,*k,c) if constw else m.input((o,*k,c))
    h,wd=(s*st if padding=="SAME" else (s-1)*st+t for s,st,t in zip(size,stride,k))
    shape=(1,h,wd,o)
    m.output(m.op("TRANSPOSE_CONV",[m.constant(shape,"int32"),w,x,m.input((o,))],shape,stride=stride,padding=padding))
for p in ("SAME","VALID"):
    case(f"tr {p}", lambda m: tr(m,(4,5),5,3,(3,3),(2,2),p))
    case(f"tr2 {p}", lambda m: tr(m,(4,5),3,13,(2,2),(2,2),p))
    case(f"tr3 {p}", lambda m: tr(m,(4,5),3,13,(2,2),(2,2),p,constw=True))
def fc(m,xs,o,keep=False,bias="r",constw=False,out=None,depth=None,activation="NONE"):
    d=depth or xs[-1]
    x=m.input(xs); w=m.random(o,d) if constw else m.input((o,d)); b=[m.input((o,))] if bias=="r" else [m.random(o)] if bias=="c" else []
    rows=int(np.prod(xs))//d
    m.output(m.op("FULLY_CONNECTED",[x,w,*b],(*xs[:-1],o) if keep else (rows,o),keep_num_dims=keep,activation=activation))
for c in (1,3,5,13): case(f"fc {c}", lambda m: fc(m,(3,c),7,bias=""))
case("fc keep", lambda m: fc(m,(2,3,5,13),5,True,activation="RELU6"))
case("fc keep3", lambda m: fc(m,(3,5,13),5,True,"c"))
case("fc nokeep", lambda m: fc(m,(3,5,13),5,False,"r",activation="RELU"))
case("fc flat", lambda m: fc(m,(3,5,13),5,False,"r",depth=39))
case("fc flat act", lambda m: fc(m,(3,5,13),5,False,"",depth=39,activation="RELU"))
case("fc bias", lambda m: fc(m,(3,13),5,False,"r",constw=True))
case("fc vec", lambda m: fc(m,(1,13),5,False,"r",constw=True))
case("fc 1", lambda m: fc(m,(1,13),5,False,"r"))
def attention(m, heads, rows, depth):
    q,k,v=(m.input((1,heads,rows,depth)) for _ in range(3))
    s=m.op("BATCH_MATMUL",[q,k],(1,heads,rows,rows),adj_y=True)
    s=m.op("MUL",[s,m.constant(depth**-.5)],(1,heads,rows,rows))
    s=m.op("SOFTMAX",[s],(1,heads,rows,rows),beta=1.0)
    o=m.op("BATCH_MATMUL",[s,v],(1,heads,rows,depth))
    o=m.op("TRANSPOSE",[o,m.constant((0,2,1,3),"int32")],(1,rows,heads,depth))
    o=m.op("RESHAPE",[o,m.constant((rows,heads*depth),"int32")],(rows,heads*depth))
    m.output(m.connected(o,13))
case("att", lambda m: attention(m,4,16,8))
case("att odd", lambda m: attention(m,3,7,5))
case("att big", lambda m: attention(m,4,128,32))
only=sys.argv[1:] 
if only: cases={k:v for k,v in cases.items() if k in only}
graphs={k:read_model(v) for k,v in cases.items()}
rng=np.random.default_rng(3)
ins={k:[rng.uniform(-2,2,g.tensors[t].shape).astype(np.float32) for t in g.inputs] for k,g in graphs.items()}
want={k:on_cpu(v,ins[k]) for k,v in cases.items()}
ctx=open_context()
for k,g in graphs.items():
    for d in ("software","hardware","eager","unfused"):
        try:
            c=compile_graph(g,DEVICES[d]) if d!="unfused" else compile_graph(g,DEVICES["software"],CompileOptions(fuse=False))
            e=worst(on_gpu(ctx,c,ins[k]),want[k])
            if not e<=1e-5 or only: print(k,d,e,[(x.name,x.tile and (x.tile.rows,x.tile.z_slices,x.tile.local,x.tile.across)) for x in c.kernels])
        except Exception as ex:
            print(k,d,type(ex).__name__,ex)
            if only: raise
print("native")
try: nets=native_networks(graphs)
except Exception as ex: print(ex); nets={}; 
for k,n in nets.items():
    e=worst(n.run(ins[k]),want[k])
    if not e<=1e-5 or only: print(k,"native",e)
print("done",len(graphs))
