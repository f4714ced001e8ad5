"""Programs as data: functions that build go in, a Program of blocks, operators and variables comes out.

program, block, operator, variable    what a program is made of
gradient_names                        ``w@GRAD`` and its kin
declare, naming, validate_operator    data and parameters; what users pass as names; operators given slot by slot
op_info                               what a program knows of an operator type
infer, abstract_values                shapes and dtypes, by running kernels on values without memory
control_flow, control_builders        cond and while; what their builders share
recurrent, arrays                     static_rnn; values by number
lift                                  Tensors met while tracing
verify, verify_control                the rules every program obeys
transform                             copies, for testing, or cut to some targets
"""
