"""How much memory each strategy plans for a network's tensors."""
