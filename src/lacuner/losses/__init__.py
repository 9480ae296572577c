"""Losses: one file each, plain functions of scores and targets, unreduced (one number per word, span or sentence)."""
