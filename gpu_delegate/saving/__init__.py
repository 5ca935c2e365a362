"""Compiled models and the driver's programs go in; they come out again in later runs, from files that are checked."""
