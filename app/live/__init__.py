"""Pictures of a camera go in as they come; a window, recordings and a virtual camera show them: `texelflow live`."""
