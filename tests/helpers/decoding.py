"""Runs a decoder's two signatures in an interpreter: a prompt, then token after token, whose caches are kept."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.decoder_models import Decoder

Tokens = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
_FIRST = 2  # the number of the first cache among inputs: behind tokens and positions


class Decoding:
    """One stream of tokens; it begins anew with each prompt, whose values take the place of all that is read."""

    def __init__(self, decoder: Decoder, interpreter: Any) -> None:
        self._decoder = decoder
        self._prefill, self._decode = (interpreter.get_signature_runner(name) for name in ("prefill", "decode"))
        self._position = 0
        self._caches = dict[str, npt.NDArray[np.float32]]()

    def prompt(self, tokens: Tokens) -> Scores:
        """The scores of what follows a prompt."""
        d = self._decoder
        self._position = 0
        if d.cache == "fed back":
            self._caches = {f"in{_FIRST + k}": np.zeros(d.cache_shape, np.float32) for k in range(len(d.caches))}
        return self._run(self._prefill, tokens)

    def token(self, token: int) -> Scores:
        """The scores of what follows one more token."""
        return self._run(self._decode, np.array([token], np.int32))

    def _run(self, runner: Any, tokens: Tokens) -> Scores:
        positions = np.arange(self._position, self._position + len(tokens), dtype=np.int32)
        self._position += len(tokens)
        found = runner(in0=tokens[None], in1=positions, **self._caches)
        for name in self._caches:
            self._caches[name] = found[f"out{int(name[2:]) - _FIRST + 1}"]
        scores: Scores = found["out0"].ravel().copy()
        return scores


def drawn_tokens(decoder: Decoder, count: int, seed: int = 1) -> Tokens:
    """A prompt, and so many tokens behind it."""
    return np.random.default_rng(seed).integers(0, decoder.vocabulary, decoder.prompt + count).astype(np.int32)


def stream_of(decoder: Decoder, interpreter: Any, tokens: Tokens) -> list[Scores]:
    """The scores behind the prompt, and behind each token that follows it."""
    decoding, size = Decoding(decoder, interpreter), decoder.prompt
    return [decoding.prompt(tokens[:size]), *(decoding.token(token) for token in tokens[size:])]
