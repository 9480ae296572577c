"""The one training loop and its foundations: datasets, steps, stages, run folder, resume. It knows no paper."""
