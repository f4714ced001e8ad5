"""`Graph` → something to look at.

dot, rank               the graph in Graphviz's language; what stands on one rank
layout, layout_worker   Graphviz itself, in a child process
svg                     the drawing, cleaned and named
words                   for a terminal, and for who hears it
html                    pages that stand alone; the widget of a folded picture
"""
