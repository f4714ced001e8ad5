"""Layers and the modules that hold their parameters.

>>> import minigrad as mg
>>> model = Sequential(Linear(64, 32), mg.relu, Linear(32, 10))
>>> model(mg.zeros([5, 64])).shape, len(model.parameters())
((5, 10), 4)
"""

from .attention import MultiHeadAttention
from .layers import Conv2d, Dropout, Embedding, Flatten, Linear, MaxPool2d
from .module import Module, Parameter, Sequential, StateError
from .norm import BatchNorm, LayerNorm
from .recurrent import GRU, LSTM, RNN
from .storage import load, save

__all__ = [
    "GRU", "LSTM", "RNN", "BatchNorm", "Conv2d", "Dropout", "Embedding", "Flatten", "LayerNorm", "Linear",
    "MaxPool2d", "Module", "MultiHeadAttention", "Parameter", "Sequential", "StateError", "load", "save",
]  # fmt: skip
