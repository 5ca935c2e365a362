"""Networks on regions of a frame, and the stage that has them find something there."""
