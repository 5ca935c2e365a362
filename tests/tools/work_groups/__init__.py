"""Work-groups that are best on this GPU, over many convolutions: `python -m tests.tools.work_groups`."""
