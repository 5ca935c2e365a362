"""How anything is measured: repeated runs, processes of their own, energy, the peak of the CPU, times as a plot."""
