"""`Graph` → events → frames: what happens, step by step.

events      what happens, one after the other
player      `play`: the frames of one drawing, with buttons
"""
