"""Figures written over the picture: records of frames go in, a panel drawn by Dear ImGui comes out."""
