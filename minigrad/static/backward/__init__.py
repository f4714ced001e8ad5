"""Writing the backward part: a program and a loss go in, the same program with grad operators behind it comes out.

append_backward      the call, and its passes in order
op_path              what lies between the loss and what wants a gradient
grad_ops             the grad operator of an operator, the grad blocks of cond, while and recurrent;
                     grad operators written out in primitives, to be differentiated again
passes               several gradients of one name are added up, none is zero; values that are gone; forward values
                     computed again; casts, variables, clips and callbacks on the way into the block
minimize             update operators behind the backward part
"""
