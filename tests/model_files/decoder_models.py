"""Decoders of transformers with a cache of keys and values, drawn from papers with random weights.

The network is that of Vaswani et al. 2017 (arXiv 1706.03762) without its encoder, with root mean square norms before
each part (Zhang & Sennrich, arXiv 1910.07467), rotary embeddings of positions (Su et al., arXiv 2104.09864), gated
units in place of the hidden layer (Shazeer, arXiv 2002.05202), and queries in groups that share keys and values
(Ainslie et al., arXiv 2305.13245). A file has two signatures, which share weights and cache: `prefill` takes all tokens
of a prompt at once, `decode` one token.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch

FAR = -1e9  # what is added to a score that does not count
MOST_ANGLE = 10000.0  # of rotary embeddings: the base of wavelengths


@dataclass(frozen=True)
class Decoder:
    """Sizes of a decoder, and how a file says it."""

    layers: int = 2
    width: int = 128
    heads: int = 4
    groups: int = 2  # of heads, each with keys and values of its own
    hidden: int = 256
    vocabulary: int = 1000
    positions: int = 128  # in the cache
    prompt: int = 32  # tokens of `prefill`
    cache: Literal["variables", "fed back"] = "variables"  # fed back: inputs that the outputs of a run become
    heads_first: bool = True  # whether the cache is [1, groups, positions, depth], or positions come first
    table: bool = False  # whether rows of the mask are looked up, or positions compared
    seed: int = 0

    @property
    def depth(self) -> int:
        """Values of a head."""
        return self.width // self.heads

    @property
    def cache_shape(self) -> tuple[int, ...]:
        """Of keys, and of values, of one layer."""
        sides = (self.groups, self.positions) if self.heads_first else (self.positions, self.groups)
        return (1, *sides, self.depth)

    @property
    def caches(self) -> tuple[str, ...]:
        """The names of all that is kept, in the order of inputs and outputs."""
        return tuple(f"{kind}{layer}" for layer in range(self.layers) for kind in "kv")


class _Weights:
    """Random weights by name, the same bytes wherever they are read."""

    def __init__(self, seed: int) -> None:
        self._rng, self._made = np.random.default_rng(seed), dict[str, tuple[tuple[int, ...], bytes]]()

    def tensor(self, m: ModelBuilder, name: str, *shape: int) -> int:
        """A constant of a graph, whose products with values around 1 are around 1."""
        if name not in self._made:
            limit = math.sqrt(3 / shape[-1])
            self._made[name] = shape, self._rng.uniform(-limit, limit, shape).astype(np.float32).tobytes()
        known, data = self._made[name]
        assert known == shape, name
        return m.tensor(shape, data=data)

    def gains(self, m: ModelBuilder, name: str, count: int) -> int:
        """Of a norm: around 1."""
        if name not in self._made:
            self._made[name] = (count,), self._rng.uniform(0.5, 1.5, count).astype(np.float32).tobytes()
        return m.tensor((count,), data=self._made[name][1])


def decoder_model(decoder: Decoder) -> bytes:
    """The file: inputs are tokens and their positions, int32, outputs are the scores of what follows the last one.

    The caches are further inputs and outputs behind these, if they are fed back.
    """
    weights = _Weights(decoder.seed)
    first, second = (_Part(decoder, weights, count).drawn() for count in (decoder.prompt, 1))
    first.further.append(second)
    if decoder.cache == "variables":
        first.further.append(_first_values(decoder))
    first.signatures = {"prefill": 0, "decode": 1}
    return first.build()


def _first_values(decoder: Decoder) -> ModelBuilder:
    """The subgraph that sets the cache to zeros."""
    before = ModelBuilder()
    zeros = before.constant(np.zeros(decoder.cache_shape, np.float32))
    for name in decoder.caches:
        handle = before.op("VAR_HANDLE", [], (), "resource", **_named(name))
        before.op_of("ASSIGN_VARIABLE", [handle, zeros], [])
    return before


def _named(name: str) -> dict[str, str]:
    return {"container": "", "shared_name": name}


class _Part:
    """A signature of so many tokens."""

    def __init__(self, decoder: Decoder, weights: _Weights, count: int) -> None:
        self.d, self.weights, self.count, self.m = decoder, weights, count, Sketch(decoder.seed)

    def drawn(self) -> Sketch:
        m, d = self.m, self.d
        if d.cache == "variables":
            m.op_of("CALL_ONCE", [], [], init_subgraph_index=2)
        tokens, positions = m.input((1, self.count), "int32"), m.input((self.count,), "int32")
        self.old = self._old_caches()
        self.new: dict[str, int] = {}
        self.start = self._start(positions)
        self.mask, (self.cosines, self.sines) = self._mask(positions), self._angles(positions)
        x = self._shaped(tokens, self.count, dtype="int32")
        table = self.weights.tensor(m, "embedding", d.vocabulary, d.width)
        x = m.op("EMBEDDING_LOOKUP", [x, table], (self.count, d.width))
        x = m.binary("MUL", self._shaped(x, 1, self.count, d.width), m.constant(math.sqrt(d.width)))
        for layer in range(d.layers):
            x = m.binary("ADD", x, self._attention(self._norm(x, f"attention{layer}"), layer))
            x = m.binary("ADD", x, self._gated(self._norm(x, f"gated{layer}"), layer))
        if self.count > 1:
            begin, size = (m.constant(each, "int32") for each in ((0, self.count - 1, 0), (1, 1, d.width)))
            x = m.op("SLICE", [x, begin, size], (1, 1, d.width))
        m.output(self._connected(self._norm(x, "last"), "embedding", d.vocabulary))
        if d.cache == "fed back":
            m.output(*(self.new[name] for name in d.caches))
        return m

    def _old_caches(self) -> Mapping[str, int]:
        m, shape = self.m, self.d.cache_shape
        if self.d.cache == "fed back":
            return {name: m.input(shape) for name in self.d.caches}
        self.handles = {name: m.op("VAR_HANDLE", [], (), "resource", **_named(name)) for name in self.d.caches}
        return {name: m.op("READ_VARIABLE", [handle], shape) for name, handle in self.handles.items()}

    def _start(self, positions: int) -> int:
        """Where the first token's row belongs in a cache."""
        m, zero = self.m, self.m.constant((0,), "int32")
        first = m.op("SLICE", [positions, zero, m.constant((1,), "int32")], (1,), "int32")
        parts = [zero, zero, first, zero] if self.d.heads_first else [zero, first, zero, zero]
        return m.op("CONCATENATION", parts, (4,), "int32", axis=0)

    def _mask(self, positions: int) -> int:
        """[1, 1, tokens, positions]: zero up to a token's own position, far below it behind."""
        m, d = self.m, self.d
        places = np.arange(d.positions)
        if d.table:
            rows = m.constant(np.where(places <= places[:, None], 0.0, FAR))
            found = m.op("GATHER", [rows, positions], (self.count, d.positions), axis=0)
            return self._shaped(found, 1, 1, self.count, d.positions)
        own, shape = self._shaped(positions, 1, 1, self.count, 1, dtype="int32"), (1, 1, self.count, d.positions)
        counts = m.op("LESS_EQUAL", [m.constant(places[None, None, None], "int32"), own], shape, "bool")
        return m.op("SELECT_V2", [counts, m.constant(0.0), m.constant(FAR)], shape)

    def _angles(self, positions: int) -> tuple[int, int]:
        """Cosines and sines [1, tokens, 1, depth / 2]."""
        m, half = self.m, self.d.depth // 2
        steps = m.constant(MOST_ANGLE ** -(np.arange(half) / half)[None, None, None])
        floats = m.op("CAST", [positions], (self.count,), in_data_type=2, out_data_type=0)
        angles = m.binary("MUL", self._shaped(floats, 1, self.count, 1, 1), steps)
        return m.unary("COS", angles), m.unary("SIN", angles)

    def _attention(self, x: int, layer: int) -> int:
        m, d, each = self.m, self.d, self.d.depth
        query = self._turned(self._heads(x, f"query{layer}", d.heads))
        keys = self._updated(f"k{layer}", self._turned(self._heads(x, f"key{layer}", d.groups)))
        values = self._updated(f"v{layer}", self._heads(x, f"value{layer}", d.groups))
        rows = d.heads // d.groups * self.count
        query = self._shaped(self._transposed(query), 1, d.groups, rows, each)
        scores = m.op("BATCH_MATMUL", [query, keys], (1, d.groups, rows, d.positions), adj_y=True)
        scores = m.binary("MUL", scores, m.constant(1 / math.sqrt(each)))
        scores = self._shaped(scores, 1, d.heads, self.count, d.positions)
        shares = m.unary("SOFTMAX", m.binary("ADD", scores, self.mask), beta=1.0)
        shares = self._shaped(shares, 1, d.groups, rows, d.positions)
        mixed = m.op("BATCH_MATMUL", [shares, values], (1, d.groups, rows, each))
        mixed = self._transposed(self._shaped(mixed, 1, d.heads, self.count, each))
        return self._connected(self._shaped(mixed, 1, self.count, d.width), f"mixed{layer}", d.width)

    def _gated(self, x: int, layer: int) -> int:
        """SiLU(a) b, and back to the width."""
        m, d = self.m, self.d
        gate, other = (self._connected(x, f"{name}{layer}", d.hidden) for name in ("gate", "up"))
        product = m.binary("MUL", m.binary("MUL", gate, m.unary("LOGISTIC", gate)), other)
        return self._connected(product, f"down{layer}", d.width)

    def _updated(self, name: str, rows: int) -> int:
        """The cache with the rows of these tokens, [1, groups, positions, depth]."""
        m, shape = self.m, self.d.cache_shape
        rows = self._transposed(rows) if self.d.heads_first else rows
        now = m.op("DYNAMIC_UPDATE_SLICE", [self.old[name], rows, self.start], shape)
        self.new[name] = now
        if self.d.cache == "variables":
            m.op_of("ASSIGN_VARIABLE", [self.handles[name], now], [])
        return now if self.d.heads_first else self._transposed(now)

    def _heads(self, x: int, name: str, count: int) -> int:
        """[1, tokens, heads, depth]."""
        return self._shaped(self._connected(x, name, count * self.d.depth), 1, self.count, count, self.d.depth)

    def _turned(self, x: int) -> int:
        """Halves of a head turned by the angles of positions."""
        m, shape = self.m, self.m.shape(x)
        part = (*shape[:-1], shape[-1] // 2)
        first, second = m.split("SPLIT", [m.constant(3, "int32"), x], (part, part), num_splits=2)
        turned = (
            m.binary("SUB", m.binary("MUL", first, self.cosines), m.binary("MUL", second, self.sines)),
            m.binary("ADD", m.binary("MUL", second, self.cosines), m.binary("MUL", first, self.sines)),
        )
        return m.op("CONCATENATION", turned, shape, axis=3)

    def _norm(self, x: int, name: str) -> int:
        m = self.m
        mean = m.mean(m.binary("MUL", x, x), (2,))
        scaled = m.binary("MUL", x, m.unary("RSQRT", m.binary("ADD", mean, m.constant(1e-6))))
        return m.binary("MUL", scaled, self.weights.gains(m, f"gains {name}", m.shape(x)[-1]))

    def _connected(self, x: int, name: str, outputs: int) -> int:
        weights = self.weights.tensor(self.m, name, outputs, self.m.shape(x)[-1])
        shape = (*self.m.shape(x)[:-1], outputs)
        return self.m.op("FULLY_CONNECTED", [x, weights, -1], shape, keep_num_dims=True)

    def _transposed(self, x: int) -> int:
        shape = self.m.shape(x)
        order = self.m.constant((0, 2, 1, 3), "int32")
        return self.m.op("TRANSPOSE", [x, order], (shape[0], shape[2], shape[1], shape[3]))

    def _shaped(self, x: int, *shape: int, dtype: str = "float32") -> int:
        return self.m.op("RESHAPE", [x, self.m.constant(shape, "int32")], shape, dtype)
