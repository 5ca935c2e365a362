"""What is written and drawn over the picture with Dear ImGui: figures, settings, messages and the timeline."""
