"""Random networks with some ops that the GPU lacks, through the interpreter with the delegate and without.

TEXELFLOW_NETWORKS=FIRST:COUNT tries other networks: `make delegate` has 500.
"""

import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for
from tests.helpers.delegated import check_delegated
from tests.helpers.markers import one_in

# Networks that compile quickly: most have two or three partitions, some a group of constants alone, one has nothing.
QUICK = (
    8, 9, 12, 13, 15, 18, 19, 20, 21, 22, 30, 34, 39, 43, 48, 49, 52, 53, 54, 55, 58, 63, 65, 72, 73, 80, 86, 87,
    95, 97, 98, 103, 113, 115, 120, 122, 125, 133, 134, 136, 138, 139, 140, 144, 146, 152, 153, 154, 156, 158,
    4847, 5380, 5627,
)  # fmt: skip


@pytest.mark.gl
@one_in(9, "seed", asked_for(QUICK))
def test_outputs_are_those_of_the_cpu_and_the_cut_is_tensorflow_lites(seed: int) -> None:
    """One network of four is of two maps at once."""
    check_delegated(random_graph(seed, "partial", 1 + seed % 4 // 3).build(), seed)
