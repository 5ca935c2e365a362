"""Sketches of the few ops that one kernel fuses or passes move, such as residuals and gates."""

from tests.model_files.sketch import Sketch


def residual(m: Sketch) -> int:
    x = m.image(7, 9, 5)
    return m.unary("RELU", m.binary("ADD", m.conv(x, 5, (3, 3)), x))


def bottleneck(m: Sketch, x: int, wide: int) -> int:
    y = m.unary("HARD_SWISH", m.conv(x, wide))
    y = m.unary("RELU", m.depthwise(y, (5, 5)))
    return m.binary("ADD", m.conv(y, m.shape(x)[3]), x)


def gate(m: Sketch, vector: int, squeezed: int) -> int:
    channels = m.shape(vector)[3]
    return m.unary("LOGISTIC", m.conv(m.unary("RELU", m.conv(vector, squeezed)), channels))


def gated(m: Sketch, x: int, squeezed: int) -> int:
    y = m.unary("RELU", m.depthwise(x, (3, 3)))
    return m.conv(m.binary("MUL", y, gate(m, m.mean(y), squeezed)), 7)


def decoder(m: Sketch) -> int:
    skip = m.image(8, 10, 3)
    up = m.conv(m.resize(m.image(4, 5, 13), (8, 10), half_pixel_centers=True), 3)
    weight = gate(m, m.mean(m.binary("ADD", skip, up)), 5)
    x = m.conv(m.binary("ADD", m.binary("MUL", skip, weight), up), 3, activation="RELU")
    return m.binary("ADD", x, m.depthwise(x, (3, 3), activation="RELU"))


def image_pooling(m: Sketch) -> int:
    x = m.image(5, 6, 5)
    return m.binary("ADD", m.resize(m.conv(m.mean(x), 5), (5, 6)), x)


def constants(m: Sketch) -> int:
    window = m.conv(m.random(1, 1, 1, 5), 5, (3, 3))
    return m.binary("MUL", m.image(5, 6, 5), m.binary("ADD", window, m.mean(m.random(1, 3, 2, 5))))


def dead_branch(m: Sketch) -> int:
    x = m.image(5, 6, 5)
    m.unary("RELU", m.conv(x, 3, (3, 3)))
    return m.unary("TANH", x)


def two_outputs(m: Sketch, channels: int = 3) -> tuple[int, ...]:
    hidden = m.conv(m.image(5, 7, 5), channels)
    return m.unary("RELU", hidden), hidden


def overflowing_lanes(m: Sketch) -> int:
    x = m.unary("EXP", m.binary("ADD", m.image(4, 5, 5), m.constant(100.0)))
    y = m.unary("SQRT", m.binary("SUB", x, m.constant(-0.5)))
    return m.conv(m.unary("SQRT", m.binary("SUB", y, m.constant(0.1))), 13)


def squared_lanes(m: Sketch) -> tuple[int, ...]:
    x = y = m.binary("ADD", m.image(4, 5, 5), m.constant(100.0))
    for _ in range(6):
        x, y = m.unary("SQUARE", x), m.binary("MUL", y, y)
    return m.conv(x, 13), m.conv(y, 13)


def vector_beside_gate(m: Sketch) -> tuple[int, ...]:
    """For chains of every length, since the names that might meet are counted."""
    x, vector = m.image(16, 16, 8), m.image(1, 1, 8)
    outputs = []
    for length in range(7):
        gate = m.conv(m.mean(x), 8)
        for _ in range(length):
            gate = m.unary("LOGISTIC", gate)
        outputs.append(m.binary("MUL", m.binary("ADD", x, vector), gate))
    return tuple(outputs)


def many_inputs(m: Sketch) -> int:
    total = m.conv(m.image(4, 5, 5), 5)
    for _ in range(16):
        total = m.binary("ADD", total, m.image(4, 5, 5))
    return total


def long_chain(m: Sketch) -> int:
    x = m.image(4, 5, 3)
    for _ in range(60):
        x = m.unary("HARD_SWISH", x)
    return x


def mask(m: Sketch) -> int:
    x = m.image(6, 7, 5)
    return m.binary("MUL", x, m.unary("LOGISTIC", m.conv(x, 1)))


def upsampled_mask(m: Sketch) -> int:
    x = m.unary("RELU", m.conv(m.image(6, 7, 5), 13))
    return m.unary("LOGISTIC", m.transpose(x, 1, (2, 2), (2, 2), "SAME", custom=True))
