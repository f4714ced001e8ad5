"""Writing the backward part: a program and a loss go in, the same program with grad operators behind it comes out.

append_backward      the call, and its passes in order
op_path              what lies between the loss and what wants a gradient
grad_ops             the grad operator of an operator
fan_in               several gradients of one name are added up, none is zero
overwritten          values that are gone
append               casts, variables, clips and callbacks on the way into the block
sub_blocks           the grad blocks of cond, while and recurrent
recompute            forward values computed again
second               grad operators written out in primitives, to be differentiated again
minimize             update operators behind the backward part
"""
