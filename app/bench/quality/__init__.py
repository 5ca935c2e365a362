"""How good masks are, of clips and of scenes whose true mattes are known."""
