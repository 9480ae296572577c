"""Corpora that outgrow one process: shards of documents, run by a process pool or by Ray."""
