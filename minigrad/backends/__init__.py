"""Backends: a Program for something else than NumPy, and one from PyTorch.

lowering          a program for given shapes, in primitives only: where every backend starts
functional        its source as one pure function of ``xp`` calls; ``xp`` on NumPy: the kernels themselves
jax/space         ``xp`` on JAX: the same kernels with jax.numpy in place of NumPy       (kernels)
jax/step          that function under `jax.jit`: ``static.compile(..., backend="jax")``
onnx/model        the program as an ONNX file: ``static.export_onnx``                    (graph, space, symbol, …)
from_torch        a function of PyTorch as a Program: ``static.from_torch``             (aten)
c/text            the program as C: ``static.to_c``                                       (nests)
c/step            that text, compiled: ``static.compile(..., backend="c")``               (build)

JAX, ONNX and PyTorch are loaded on first use, and none is needed for anything else.
"""
