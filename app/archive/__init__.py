"""`texelflow archive`: segments thousands of recordings, with workers on this machine or on many (Ray).

Folders in their order, each of which uses those before it: jobs, results, inputs, staging, manifest, rendering,
cluster, scheduling, progress. The files here tie them together.
"""
