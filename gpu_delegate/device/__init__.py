"""What compilation knows of a device: limits, family, tuning, shapes of work-groups."""
