"""What a picture is to look like: effects, colors, backgrounds, legends; without OpenGL."""
