"""Benchmarks: a grid of recipes x data x noise x encoders x seeds, with one training and test per cell.

`load_spec` reads what to measure, `run_bench` runs the cells without a result, `write_results` writes tables and plots.
"""
