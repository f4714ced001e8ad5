"""Backends: a Program for something else than NumPy, and one from PyTorch.

lowering          what users call of the backends
jax_step          the program as one function under `jax.jit`: ``static.compile(..., backend="jax")``
onnx_model        the program as an ONNX file: ``static.export_onnx``
from_torch        a function of PyTorch as a Program: ``static.from_torch``
c/text            the program as C: ``static.to_c``                           (nests, expressions)
c/step            that text, compiled: ``static.compile(..., backend="c")``               (build)

JAX, ONNX and PyTorch are loaded on first use, and none is needed for anything else.
"""
