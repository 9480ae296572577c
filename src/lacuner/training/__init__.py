"""The one training loop and what it stands on: batches, run folder, resume. It knows no paper."""
