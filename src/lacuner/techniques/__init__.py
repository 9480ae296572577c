"""Techniques that several recipes share: self-training, distillation, label completion and removal."""
