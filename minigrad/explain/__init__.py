"""Explaining gradients: in comes a value of either engine, out comes how its gradient was made, or why there is none.

why            `mg.why`: which engine answers
paths          every way along the edges, with its share, as text; where one becomes 0, NaN, infinite, small, large
rerun          backward once more on remembered values: what every node gave
pytorch        Tensors, modules and optimizers of PyTorch
source_cuts    where the user's code leaves the graph, read without running it
programs       the same for the Variables of a Program
"""
