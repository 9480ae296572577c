"""Diagnostics of a training run, with gold labels that the recipe itself never sees."""
