"""What all of the engine uses and what knows nothing of models: errors, wording, the cache on disk, DEBUG."""
