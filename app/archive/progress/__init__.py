"""How far a run is, for people and for machines."""
