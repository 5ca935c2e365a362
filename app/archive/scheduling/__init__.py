"""Which worker does which job next."""
