"""What to change in a model so that it costs less on the GPU: compiled partitions go in, advice comes out."""
