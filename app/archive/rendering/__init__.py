"""What a worker does with a job: recordings are cut, rendered and placed in the output folder."""
