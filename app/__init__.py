"""texelflow's program: frames go in, segmented pictures come out, drawn by the engine in gpu_delegate."""
