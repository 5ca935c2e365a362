"""Planners that no default uses: `--planner` and `bench memory` compare with them."""
