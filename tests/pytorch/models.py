"""Real models, written by hand with torch.nn: the tests draw them, explain them and make Programs of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, c, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(c, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = None
        if stride != 1 or c != out:
            self.down = nn.Sequential(nn.Conv2d(c, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.down is None else self.down(x)
        return F.relu(out)


class ResNet18(nn.Module):
    def __init__(self, width=64, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        for k in range(1, 5):
            a, b = sizes[k - 1], sizes[k]
            setattr(
                self, f"layer{k}", nn.Sequential(Residual(a, b, 1 if k == 1 else 2), Residual(b, b))
            )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.fused = heads, fused
        self.register_buffer("mask", torch.tril(torch.ones(64, 64)).bool(), persistent=False)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (
            p.view(n, t, self.heads, -1).transpose(1, 2) for p in self.c_attn(x).split(c, dim=2)
        )
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
            y = scores.masked_fill(~self.mask[:t, :t], float("-inf")).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(n, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, fused=False):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads, fused)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))  # fmt: skip

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT-2 as it is: learned positions, the head shares the weight of the embedding."""

    def __init__(self, words=64, length=16, width=32, heads=4, layers=2, fused=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.h = nn.ModuleList([Block(width, heads, fused) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def mlp():
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 4)
    )


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, stride=2, groups=2), nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
