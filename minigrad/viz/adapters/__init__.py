"""Objects → `Graph`: an adapter reads what an object can do, never its class.

sources         which adapter draws what; names: what things are called
of_nodes        linked nodes (the course's engines), by their links or as `watching` saw them run
of_grad_fn      the grad_fn graphs of Tensors
of_torch        those of PyTorch, with frames for modules: frames, which also draws a module alone
of_program      Programs; of_net: nets of operators; both name what they read and write: wiring
inside          what a node says: its lines, ports and words, from these facts
formula         formulas in school notation, from the code of rules
"""
