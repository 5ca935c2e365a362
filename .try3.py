import time
from tests.native import native_networks
from tests.contraction_cases import contractions
from tests.gpu_delegate.llvm.test_native_ops import ROWS
from texelflow.gpu_delegate.reading.reader import read_model


def t(cs):
    a = time.process_time()
    native_networks({c.name: read_model(c.model()) for c in cs})
    return time.process_time() - a


mine = [c for c in contractions() if not c.refused]
print("all", t(ROWS.values()), "mine", t(mine))
for c in mine:
    print(c.name, round(t([c]), 2))
