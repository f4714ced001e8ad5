"""Backends: a Program for something else than NumPy.

lowering          a program for given shapes, in primitives only: what every backend starts from
functional        its source as one pure function of ``xp`` calls                        (loops)
numpy_space       ``xp`` on NumPy: the kernels themselves, to read and to compare with
jax_space         ``xp`` on JAX: the same kernels with jax.numpy in place of NumPy        (jax_kernels, jax_loops)
jax_step          that function under `jax.jit`: ``static.compile(..., backend="jax")``
onnx_export       the program as an ONNX file: ``static.export_onnx``                    (onnx_graph, onnx_space, …)

JAX and ONNX are loaded on first use, and neither is needed for anything else.
"""
