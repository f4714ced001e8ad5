"""Writing the backward part: a program and a loss go in, the same program with grad operators behind it comes out.

append_backward, passes            the call, and its passes in order
op_path                            what lies between the loss and what wants a gradient
grad_ops, custom_grad_makers       the grad operator of an operator
overwritten, gradient_dtypes       values that are gone; casts where dtypes are mixed
sub_blocks                         the grad blocks of cond, while and recurrent
recompute                          forward values computed again
second, second_cond                grad operators written out in primitives, to be differentiated again
minimize                           update operators behind the backward part
"""
