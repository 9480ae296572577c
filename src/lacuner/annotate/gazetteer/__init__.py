"""Gazetteers: lists of entries (surface and label), read from the files people have.

`load.py` finds format and encoding and picks a reader. The readers are `tables.py` (CSV, TSV, plain lists) and
`json_forms.py` (JSON lines, spaCy patterns, SPARQL results). They pass every row to the `GazetteerBuilder` of
`entries.py`, which keeps it as an entry or records what is wrong with it, with file and line.
"""
