"""Data parallelism: one training step on four devices, each with a quarter of the batch.

The program knows nothing of devices.  JAX splits the computation as the feeds are split, and adds up the gradients of
the parameters, which every device holds whole.  Four devices are simulated on the CPU; needs JAX: pip install jax.

python examples/four_devices.py
"""

from __future__ import annotations

import argparse
import os

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import minigrad as mg
from minigrad import data, nn, optim, static


def program_of(batch: int) -> tuple[static.Program, list[static.Variable]]:
    """A dense network on digits, its gradients and its updates; and what is fetched: loss and gradients."""
    model = nn.Sequential(nn.Linear(64, 64, seed=0), mg.relu, nn.Linear(64, 10, seed=1))
    program = static.Program()
    with static.program_guard(program):
        images = static.data("images", [batch, 64])
        labels = static.data("labels", [batch], dtype="int64")
        loss = mg.cross_entropy(model(images), labels)
        pairs = optim.SGD(lr=0.1).minimize(loss)
    return program, [loss, *(grad for _, grad in pairs)]


def main(steps: int = 20, batch: int = 256) -> float:
    """Train on one device and on four; returns the largest difference of a gradient."""
    devices = jax.devices()
    split = NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec("batch"))
    program, fetch = program_of(batch)
    alone = static.compile(program, fetch=fetch, backend="jax")
    together = static.compile(program, fetch=fetch, backend="jax")
    digits = data.digits()
    images = digits.images.reshape(len(digits.images), -1).astype(float)
    loader = data.DataLoader((images, digits.labels), batch_size=batch, drop_last=True).forever()
    worst = 0.0
    for _ in range(steps):
        x, t = next(loader)
        one = alone(images=x, labels=t)
        with jax.enable_x64(True):
            x, t = jax.device_put((x, t), split)
        four = together(images=x, labels=t)
        for a, b in zip(one, four, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
            worst = max(worst, float(np.abs(np.asarray(a) - np.asarray(b)).max()))
    print(
        f"batch on {len(x.sharding.device_set)} devices, {x.addressable_shards[0].data.shape} on each"
    )
    print(
        f"loss {float(four[0]):.3f} after {steps} steps; largest difference of a gradient {worst:.1e}"
    )
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--steps", type=int, default=20)
    main(parser.parse_args().steps)
