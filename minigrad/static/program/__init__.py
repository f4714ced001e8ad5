"""Programs as data: functions that build go in, a Program of blocks, operators and variables comes out.

program, block, operator, variable    what a program is made of; data and parameters; types of operators
names                                 ``w@GRAD`` and its kin
infer                                 shapes and dtypes, by running kernels on values without memory
control_flow                          cond, while, static_rnn and what is made of them
verify                                the rules every program obeys
transform                             copies, for testing, or cut to some targets
"""
