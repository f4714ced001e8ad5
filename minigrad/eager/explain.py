def no_graph_reason(out): return "?"
