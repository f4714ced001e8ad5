"""Programs as text and as JSON, and back: the same program, byte for byte.

syntax      one line per operator
json        a closed schema
literals    attrs in both
"""
