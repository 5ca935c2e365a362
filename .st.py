import numpy as np, texelflow
from tests.state_models import STATE_MODELS
from tests.delegated import interpreter_of, inferred

for k, f in STATE_MODELS.items():
    v = f()
    d = texelflow.GpuDelegate()
    a, b = interpreter_of(v), interpreter_of(v, d)
    rng = np.random.default_rng(0)
    for step in range(6):
        if step == 4:
            a.reset_all_variables()
            b.reset_all_variables()
        ins = [rng.uniform(-1, 1, x["shape"]).astype(np.float32) for x in a.get_input_details()]
        x, y = inferred(a, ins), inferred(b, ins)
        print(k, step, max(np.abs(p - q).max() for p, q in zip(x, y)), np.abs(x[0]).max())
    print([p.nodes for p in d.partitions])
    print({k: v for k, v in d.__dict__.items() if "reason" in k}, [n for n in dir(d) if not n.startswith("_")])
