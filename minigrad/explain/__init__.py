"""Explaining gradients: in comes a value of either engine, out comes how its gradient was made, or why there is none.

why            `mg.why`: which engine answers
explanation    what was found, and how it reads
paths          every way along the edges, with its share
rerun          backward once more on remembered values: what every node gave
linked         the engines of the course
programs       the same for the Variables of a Program
"""
