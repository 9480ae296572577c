"""What to look at: what a training with gaps does, watched by somebody who knows the gaps."""
