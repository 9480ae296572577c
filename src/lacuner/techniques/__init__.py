"""Techniques that several recipes share: self-training, distillation, cross-fitting, label completion and removal."""
