"""The training loop and its foundations: datasets, steps, stages, run folder, resume. Independent of any method."""
