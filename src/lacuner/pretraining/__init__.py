"""Masked language modelling: domain-adaptive pre-training of encoders, and augmentation with the result."""
