"""Running a program: feeds go in, what is fetched comes out, parameters are changed in the scope.

executor         a run, as a transaction; what it is fed
interpreter      how every kind of operator is carried out: primitives, branches, loops; where values are
kernels          kernels and gradient rules called by slots
limits           how large results may become
"""
