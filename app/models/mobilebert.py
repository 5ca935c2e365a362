"""Builds MobileBERT with random weights: its input is numbers of words, its output where an answer starts and ends.

Layers: arXiv 2004.02984, in the sizes of the published uncased_L-24_H-128_B-512_A-4_F-4_OPT, on 384 words. Ops: those
that TensorFlow Lite's converter made of it in 2019. Products of two computed matrices are a FULLY_CONNECTED for each
head, between slices and PACK: BATCH_MATMUL came later. Scales and biases right behind a layer are inside its weights.
One thing differs: kinds of segments are looked up by GATHER, where that code multiplies ONE_HOT by the same table.
"""

from texelflow.gpu_delegate.model.graph import Activated, Axis, Pad, Softmax
from texelflow.gpu_delegate.ops.cast import Cast

from .network_builder import Network

WORDS = 384
VOCABULARY, SEGMENTS, EMBEDDED = 30522, 2, 128
BLOCKS, WIDE, NARROW, HEADS, FEED_FORWARDS = 24, 512, 128, 4, 4
DEPTH = NARROW // HEADS
_NEVER = -10000.0  # the score of a word that is not there
_IN_HEADS = (0, 2, 1, 3)  # of words, heads and channels, and back


def mobilebert(net: Network, blocks: int = BLOCKS) -> None:
    """The first output says for each word how likely the answer starts there, the second whether it ends there."""
    words, mask, segments = (net.integers(1, WORDS) for _ in range(3))
    x = _embedded(net, words, segments)
    hidden = _hidden(net, mask)
    for _ in range(blocks):
        x = _block(net, x, hidden)
    marks = net.reshaped(net.connected(x, 2), 1, WORDS, 2)
    net.output(*net.split("UNPACK", [net.transposed(marks, 2, 0, 1)], [(1, WORDS)] * 2, Axis(0)))


def _embedded(net: Network, words: int, segments: int) -> int:
    """Each word beside the one before it and the one after it, its segment and its place."""
    x = net.reshaped(_looked_up(net, words, net.constant(VOCABULARY, EMBEDDED)), 1, WORDS, EMBEDDED)
    after = _padded(net, net.sliced(x, (0, 1, 0), (1, WORDS - 1, EMBEDDED)), (0, 1))
    before = _padded(net, net.sliced(x, (0, 0, 0), (1, WORDS - 1, EMBEDDED)), (1, 0))
    x = net.connected(net.reshaped(net.side(after, x, before, axis=2), WORDS, 3 * EMBEDDED), WIDE)
    x = net.added(x, _looked_up(net, segments, net.constant(SEGMENTS, WIDE)))
    return _scaled(net, net.added(x, net.constant(WORDS, WIDE)))


def _looked_up(net: Network, numbers: int, table: int) -> int:
    flat = net.reshaped(numbers, WORDS)
    return net.op("GATHER", [table, flat], (WORDS, net.shape(table)[1]), Axis(0))


def _padded(net: Network, x: int, words: tuple[int, int]) -> int:
    return net.op("PAD", [x], (1, WORDS, EMBEDDED), Pad(((0, 0), words, (0, 0))))


def _hidden(net: Network, mask: int) -> int:
    """What is added to scores, so that nothing attends to a word that is not there."""
    x = net.op("CAST", [net.reshaped(mask, 1, 1, 1, WORDS)], (1, 1, 1, WORDS), Cast("int32", "float32"))
    x = net.op("MUL", [x, net.filled(1.0, 1, 1, WORDS, 1)], (1, 1, WORDS, WORDS), Activated())
    x = net.op("SUB", [net.filled(1.0, 1), x], net.shape(x), Activated())
    return net.op("MUL", [x, net.filled(_NEVER, 1)], net.shape(x), Activated())


def _block(net: Network, x: int, hidden: int) -> int:
    """Narrow, attend, feed forward four times, widen again."""
    narrow, shared = net.connected(x, NARROW), net.connected(x, NARROW)
    attended = _attended(
        net, net.connected(shared, NARROW), net.connected(shared, NARROW), net.connected(x, NARROW), hidden
    )
    y = _scaled(net, net.added(net.connected(attended, NARROW), narrow))
    for _ in range(FEED_FORWARDS):
        y = _scaled(net, net.added(net.connected(net.connected(y, WIDE, "RELU"), NARROW), y))
    return _scaled(net, net.added(net.connected(y, WIDE), x))


def _attended(net: Network, query: int, key: int, value: int, hidden: int) -> int:
    query, key, value = (
        net.transposed(net.reshaped(x, 1, WORDS, HEADS, DEPTH), *_IN_HEADS) for x in (query, key, value)
    )
    scores = _products(net, query, key)
    scores = net.op("MUL", [scores, net.filled(DEPTH**-0.5, 1)], net.shape(scores), Activated())
    scores = net.op("ADD", [scores, hidden], net.shape(scores), Activated())
    shares = net.op("SOFTMAX", [scores], net.shape(scores), Softmax())
    found = _products(net, shares, net.transposed(value, 0, 1, 3, 2))
    return net.reshaped(net.transposed(found, *_IN_HEADS), WORDS, NARROW)


def _products(net: Network, x: int, y: int) -> int:
    """Of each head's rows of x and of y."""
    rows, columns = net.shape(x)[2], net.shape(y)[2]
    heads = [net.multiplied(a, b) for a, b in zip(_heads(net, x), _heads(net, y), strict=True)]
    return net.reshaped(net.op("PACK", heads, (HEADS, rows, columns), Axis(0)), 1, HEADS, rows, columns)


def _heads(net: Network, x: int) -> list[int]:
    _, heads, rows, columns = net.shape(x)
    x = net.reshaped(x, heads, rows, columns)
    slices = (net.sliced(x, (head, 0, 0), (1, rows, columns)) for head in range(heads))
    return [net.reshaped(one, rows, columns) for one in slices]


def _scaled(net: Network, x: int) -> int:
    """The paper's NoNorm, in place of layer normalization: a scale and a bias for each channel."""
    width = net.shape(x)[-1]
    scaled = net.op("MUL", [x, net.constant(width, terms=2)], net.shape(x), Activated())
    return net.added(scaled, net.constant(width, terms=100))
