"""The program texelflow: segments pictures and recordings with the engine in gpu_delegate."""
