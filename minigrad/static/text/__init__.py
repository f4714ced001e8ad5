"""Programs as text and as JSON, and back: the same program, byte for byte.

printer, parser    one line per operator
json, loader       a closed schema
literals           attrs in both
"""
