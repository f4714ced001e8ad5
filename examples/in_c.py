"""A training step as a Program, and the same step as C: forward, backward and update, generated.

python examples/in_c.py
"""

import time

import numpy as np

import minigrad as mg
from minigrad import static


def program():
    """A small network: 8 inputs, 16 hidden units, one output, mean squared error, plain descent."""
    rng, prog = np.random.default_rng(0), static.Program()
    with static.program_guard(prog):
        x, y = static.data("x", [16, 8], "float32"), static.data("y", [16, 1], "float32")
        w1 = static.parameter("w1", (rng.normal(size=(8, 16)) / 8**0.5).astype(np.float32))
        w2 = static.parameter("w2", (rng.normal(size=(16, 1)) / 16**0.5).astype(np.float32))
        loss = mg.mse(mg.tanh(x @ w1) @ w2, y)
        mg.optim.SGD(lr=0.05).minimize(loss)
    return prog, loss


if __name__ == "__main__":
    prog, loss = program()
    print(prog)
    print(static.to_c(prog, fetch=loss, exact=False))
    rng = np.random.default_rng(1)
    batch = {"x": rng.normal(size=(16, 8)).astype(np.float32)}
    batch["y"] = batch["x"][:, :1] * batch["x"][:, 1:2]
    for backend in ("numpy", "c"):
        step = static.compile(prog, fetch=loss, exact=False, backend=backend)
        start, steps = time.perf_counter(), 5000
        for _ in range(steps):
            value = step(**batch)
        each = (time.perf_counter() - start) / steps
        print(f"{backend:6} loss {value:.4f} after {steps} steps of {each * 1e6:.1f} µs")
