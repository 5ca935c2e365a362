"""What several instances of a model take, with and without a WeightsCache: `python -m tests.tools.weights`."""
