"""Running a program: feeds go in, what is fetched comes out, parameters are changed in the scope.

executor, scope    a run; where values are
kernels, control   operators called by slots; branches and loops
feeds, limits      what is fed; how large results may become
"""
