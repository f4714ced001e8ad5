"""What a picture says, before anyone decides how it is drawn: adapters fill a `Graph`, renderers read it.

graph       nodes, lines and frames; who feeds whom
style       the look of every mark, in three tables
format      values and names as short text
"""
