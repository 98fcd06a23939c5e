"""Background and foreground of a clip."""
