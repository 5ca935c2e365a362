"""Tools for the developers of texelflow, which no user needs: measurements, counts and drawings of the code itself."""
