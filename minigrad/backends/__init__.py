"""Backends: a Program for something else than NumPy, and one from PyTorch.

lowering          a program for given shapes, in primitives only: where every backend starts
functional        it is carried out as one pure function, by an ``xp``; ``xp`` on NumPy: the kernels themselves
jax/step          ``xp`` on JAX, that function under `jax.jit`: ``static.compile(..., backend="jax")``   (kernels)
onnx/model        the program as an ONNX file: ``static.export_onnx``             (symbol, numpy_names, kernels)
from_torch        a function of PyTorch as a Program: ``static.from_torch``             (aten)
c/text            the program as C: ``static.to_c``                           (page, calls, nests)
c/step            that text, compiled: ``static.compile(..., backend="c")``               (build)

JAX, ONNX and PyTorch are loaded on first use, and none is needed for anything else.
"""
