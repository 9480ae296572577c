"""The measuring rig: recipes x data x noise x encoders x seeds become cells, cells rows, rows a table and pictures.

`load_spec` reads what to measure, `run_bench` measures what nobody has measured yet, `write_results` makes the files.
"""
