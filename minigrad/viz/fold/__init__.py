"""`Graph` → a smaller `Graph`: what is large is drawn small, says so, and can be opened.

fold        how much is drawn, and what was opened since (`View`)
segments    repeats and neighbours, each drawn as one node
"""
