"""From data and settings to a finished run folder: choose the recipe, train it, write label issues."""
