"""Pictures and tensors between RAM and the device: upload, resampling, targets, and reading back."""
