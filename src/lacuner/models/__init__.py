"""Encoders, heads, and the taggers that are made of them. A new encoder or head: see `encoders` and `heads`."""
