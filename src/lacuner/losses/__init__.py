"""Losses: one file each, plain functions of scores and targets, unreduced (one number per word, span or sentence).

Import a loss from its own file: this package exports nothing, so that adding a loss is adding its file and its test.
"""
