"""`Graph` → events → frames: what happens, step by step.

events      what happens, one after the other
film        the frames of one drawing
player      `play`: a film with buttons
"""
