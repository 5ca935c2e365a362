"""Tokens a second of a decoder with a cache of keys and values: `python -m tests.tools.decoder`."""
