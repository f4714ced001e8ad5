"""Graphs of every kind, each made by one function: what pictures are measured on.

The name of a function is the name of its graph, its documentation says what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, static
from minigrad.static import net

GRAPHS: dict[str, Callable[[], Any]] = {}


def graph(make: Callable[[], Any]) -> Callable[[], Any]:
    """Enter a function in the table."""
    GRAPHS[make.__name__] = make
    return make


def ones(*shape: int) -> Any:
    return mg.tensor(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape))


def weight(*shape: int, name: str | None = None) -> Any:
    values = np.linspace(-0.5, 0.5, int(np.prod(shape))).reshape(shape)
    return mg.tensor(values, requires_grad=True, name=name)


def scalar(value: float) -> Any:
    return mg.tensor(value, requires_grad=True)


# ---- linked nodes ---------------------------------------------------------------------------


class Box:
    """A value, its gradient and the function that made it."""

    def __init__(self, data: Any) -> None:
        self.data, self.grad, self.creator = np.asarray(data, dtype=float), None, None


class Function:
    def __call__(self, *inputs: Box) -> Box:
        output = Box(self.forward(*[b.data for b in inputs]))
        output.creator, self.inputs, self.outputs = self, inputs, [output]
        return output


class Square(Function):
    def forward(self, x):
        return x**2

    def backward(self, gy):
        x = self.inputs[0].data
        return 2 * x * gy


class Add(Function):
    def forward(self, x0, x1):
        return x0 + x1

    def backward(self, gy):
        return gy, gy


class Mul(Function):
    def forward(self, x0, x1):
        return x0 * x1

    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy * x1, gy * x0


def walk(y: Box) -> Box:
    """Backward along the links, newest first; gradients add up."""
    y.grad = np.ones_like(y.data)
    functions = [y.creator]
    while functions:
        function = functions.pop(0)
        gradients = function.backward(function.outputs[0].grad)
        for x, g in zip(
            function.inputs,
            gradients if isinstance(gradients, tuple) else (gradients,),
            strict=True,
        ):
            x.grad = g if x.grad is None else x.grad + g
            if x.creator is not None and x.creator not in functions:
                functions.append(x.creator)
    return y


@graph
def linked_chain():
    """Linked nodes: six squares in a row"""
    h = x = Box(1.01)
    for _ in range(6):
        h = Square()(h)
    return mg.draw(walk(h), names={"x": x, "y": h})


@graph
def linked_fans():
    """Linked nodes: values that are used several times"""
    x, w = Box(0.5), Box(-2.0)
    a = Mul()(x, w)
    b = Add()(a, a)
    y = Add()(Mul()(b, x), Square()(a))
    return mg.draw(walk(y), names={"x": x, "w": w, "a": a, "b": b, "y": y})


@graph
def linked_wide():
    """Linked nodes: eight products that are summed up"""
    xs, w = [Box(0.1 * i) for i in range(8)], Box(3.0)
    y = Mul()(xs[0], w)
    for x in xs[1:]:
        y = Add()(y, Mul()(x, w))
    return mg.draw(walk(y), names={f"x{i}": x for i, x in enumerate(xs)} | {"w": w, "y": y})


# ---- Tensors --------------------------------------------------------------------------------


@graph
def three_operations():
    """mul, add, tanh of numbers"""
    a, b = scalar(2.0), scalar(-3.0)
    e = mg.tanh(a * b + a)
    e.backward()
    return mg.draw(e, names={"a": a, "b": b, "e": e})


@graph
def neuron():
    """One neuron with two inputs, in long names"""
    names = ("input_of_the_left_eye", "weight_of_the_left_eye", "input_of_the_right_eye",
             "weight_of_the_right_eye", "how_easily_it_fires")  # fmt: skip
    v = [scalar(x) for x in (2.0, -3.0, 0.0, 1.0, 6.88)]
    y = mg.tanh(v[0] * v[1] + v[2] * v[3] + v[4])
    y.backward()
    return mg.draw(y, names=dict(zip(names, v, strict=True)))


@graph
def mlp():
    """A net of two layers with a mean squared error"""
    X, W1, W2, t = ones(8, 4), weight(4, 16), weight(16, 3), ones(8, 3)
    loss = ((mg.relu(X @ W1) @ W2 - t) ** 2).mean()
    loss.backward()
    return mg.draw(loss, names={"X": X, "W1": W1, "W2": W2, "t": t, "loss": loss})


@graph
def ten_layers():
    """A net of ten linear layers with tanh between them"""
    net_ = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(4, 4), nn.Tanh())])
    loss = (net_(ones(2, 4)) ** 2).mean()
    loss.backward()
    return mg.draw(loss)


@graph
def ten_layers_before():
    """The same ten layers before backward"""
    h, ws = ones(2, 4), [weight(4, 4) for _ in range(10)]
    for w in ws:
        h = mg.tanh(h @ w)
    return mg.draw(h.sum(), names={f"w{i}": w for i, w in enumerate(ws)})


@graph
def cnn():
    """A convolutional net with cross entropy"""
    net_ = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(),
                         nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
    loss = mg.cross_entropy(net_(ones(2, 1, 10, 10)), mg.tensor(np.array([3, 7])))
    loss.backward()
    return mg.draw(loss)


@graph
def lstm():
    """Five steps of an LSTM, written out"""
    Wx, Wh, b = weight(3, 16), weight(4, 16), weight(16)
    h, c = mg.tensor(np.zeros((2, 4))), mg.tensor(np.zeros((2, 4)))
    for _ in range(5):
        i, f, g, o = mg.split(ones(2, 3) @ Wx + h @ Wh + b, 4, axis=1)
        c = mg.sigmoid(f) * c + mg.sigmoid(i) * mg.tanh(g)
        h = mg.sigmoid(o) * mg.tanh(c)
    loss = h.sum()
    loss.backward()
    return mg.draw(loss, names={"Wx": Wx, "Wh": Wh, "b": b, "loss": loss})


@graph
def attention():
    """Attention with two heads, and a feed-forward part with residuals"""
    x = weight(1, 4, 8)
    att, up, down = nn.MultiHeadAttention(8, 2), nn.Linear(8, 16), nn.Linear(16, 8)
    h = x + att(x)
    loss = (h + down(mg.gelu(up(h)))).sum()
    loss.backward()
    return mg.draw(loss, names={"x": x})


@graph
def attention_by_hand():
    """Attention in plain operators, four heads side by side"""
    x, heads = ones(4, 8), []
    names = {}
    for k in range(4):
        q, key, v = (names.setdefault(f"{n}{k}", weight(8, 2)) for n in "QKV")
        scores = mg.softmax((x @ q) @ mg.transpose(x @ key) / 1.4, axis=-1)
        heads.append(scores @ (x @ v))
    loss = (mg.concat(heads, axis=-1) ** 2).mean()
    loss.backward()
    return mg.draw(loss, names=names | {"x": x, "loss": loss})


@graph
def residual():
    """Six residual blocks"""
    h = x = weight(4)
    ws = [weight(4) for _ in range(6)]
    for w in ws:
        h = h + mg.relu(h * w)
    loss = h.sum()
    loss.backward()
    return mg.draw(loss, names={f"w{i}": w for i, w in enumerate(ws)} | {"x": x})


@graph
def second_order():
    """The gradient of a gradient"""
    x = scalar(0.5)
    y = mg.sin(x) * x**3
    (g,) = mg.grad([y], [x], create_graph=True)
    (h,) = mg.grad([g], [x])
    return mg.draw([y, g], names={"x": x, "y": y, "g": g, "h": h})


@graph
def third_order():
    """Three derivatives of a product"""
    x = scalar(0.5)
    y = mg.exp(x * x) * mg.tanh(x)
    (g,) = mg.grad([y], [x], create_graph=True)
    (h,) = mg.grad([g], [x], create_graph=True)
    return mg.draw([y, g, h], names={"x": x, "y": y, "g": g, "h": h})


class Cube(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


@graph
def custom_function():
    """An op of one's own"""
    x, w = scalar(2.0), scalar(0.5)
    y = Cube.apply(x * w) + w
    y.backward()
    return mg.draw(y, names={"x": x, "w": w, "y": y})


@graph
def in_place():
    """Changes in place"""
    x, w = weight(4), weight(4)
    h = x * 2.0
    h *= w
    h[1:3] = 0.5
    h += x
    loss = (h * h).sum()
    loss.backward()
    return mg.draw(loss, names={"x": x, "w": w, "h": h})


@graph
def einsum():
    """einsum with three operands"""
    a, b, c = weight(2, 3), weight(3, 4), weight(4, 2)
    y = mg.einsum("ij,jk,ki->i", a, b, c).sum()
    y.backward()
    return mg.draw(y, names={"a": a, "b": b, "c": c, "y": y})


@graph
def index_arrays():
    """Indices that are arrays, and a table of embeddings"""
    table = weight(6, 3)
    rows = mg.embedding(mg.tensor(np.array([0, 2, 2, 5])), table)
    picked = table[np.array([1, 1, 3])]
    loss = (rows.sum() + (picked * picked).mean()) * 2.0
    loss.backward()
    return mg.draw(loss, names={"table": table, "rows": rows, "picked": picked})


@graph
def big_and_small():
    """One large array among numbers"""
    x, w = scalar(2.0), scalar(0.5)
    big = mg.tensor(np.full((300, 300), 1e-3), requires_grad=True)
    y = (big * w).sum() * x
    y.backward()
    return mg.draw(y, names={"x": x, "w": w, "big": big, "y": y})


@graph
def every_gradient():
    """The gradients of all values in between"""
    a, b = scalar(2.0), scalar(3.0)
    h = a * b
    k = h + a
    y = k * h + mg.sin(k) * a
    y.backward()
    return mg.draw(y, names={"a": a, "b": b, "h": h, "k": k, "y": y}, values="grad")


@graph
def normal_density():
    """The logarithm of a normal density"""
    x, mu, sigma = weight(5), scalar(0.1), scalar(1.3)
    y = (-0.5 * ((x - mu) / sigma) ** 2 - mg.log(sigma)).sum()
    y.backward()
    return mg.draw(y, names={"x": x, "mu": mu, "sigma": sigma, "y": y})


@graph
def wide_sum():
    """Twelve leaves in one sum"""
    xs = [scalar(0.1 * i) for i in range(12)]
    y = mg.stack([mg.sin(x) for x in xs]).sum()
    y.backward()
    return mg.draw(y, names={f"angle_{i}": x for i, x in enumerate(xs)})


@graph
def leaves_in_one_sum():
    """Fifty parameters that one operation reads"""
    total = mg.add_n(*[weight(2, name=f"p{k}") for k in range(50)]).sum()
    total.backward()
    return mg.draw(total)


@graph
def leaves_read_twice():
    """Thirty layers whose weights are punished, too"""
    weights = [weight(4, 4, name=f"w{k}") for k in range(30)]
    h = ones(2, 4)
    for w in weights:
        h = mg.tanh(h @ w)
    loss = h.sum() + 0.01 * mg.add_n(*[(w * w).sum() for w in weights])
    loss.backward()
    return mg.draw(loss)


@graph
def punished_modules():
    """Sixty parameters of modules, squared and added up"""
    weights = [weight(2, 2, name=f"layer{k}.weight") for k in range(60)]
    loss = sum(((w * w).sum() for w in weights), mg.tensor(0.0))
    loss.backward()
    return mg.draw(loss)


@graph
def wide_letters():
    """Names in letters that are as wide as two"""
    x, w = weight(2, name="入力" * 9), weight(2, name="重み行列" * 5)
    loss = (mg.tanh(x) * w).sum()
    loss.backward()
    return mg.draw(loss)


@graph
def random_dag():
    """Forty operators on values drawn at random"""
    rng = np.random.default_rng(0)
    pool = [weight(3) for _ in range(4)]
    for _ in range(40):
        x, y = (pool[i] for i in rng.integers(0, len(pool), 2))
        pool.append(
            [lambda x=x, y=y: x * y, lambda x=x, y=y: x + y, lambda x=x: mg.tanh(x)][
                rng.integers(3)
            ]()
        )
    loss = mg.add_n(pool).sum()
    loss.backward()
    return mg.draw(loss)


@graph
def operators_200():
    """200 operators in a row, each layer with a weight of its own"""
    h, ws = ones(3), [weight(3) for _ in range(100)]
    for w in ws:
        h = mg.tanh(h * w)
    loss = h.sum()
    loss.backward()
    return mg.draw(loss, names={f"w{i}": w for i, w in enumerate(ws)})


@graph
def operators_200_random():
    """200 operators on values drawn at random"""
    rng = np.random.default_rng(1)
    pool = [weight(3) for _ in range(6)]
    for _ in range(200):
        x, y = (pool[i] for i in rng.integers(max(0, len(pool) - 30), len(pool), 2))
        pool.append((x * y) if rng.random() < 0.5 else mg.tanh(x + y))
    loss = mg.add_n(pool[-9:]).sum()
    loss.backward()
    return mg.draw(loss)


@graph
def operators_2000():
    """2,000 operators on values drawn at random"""
    rng = np.random.default_rng(2)
    pool = [weight(3) for _ in range(6)]
    for _ in range(2000):
        x, y = (pool[i] for i in rng.integers(max(0, len(pool) - 30), len(pool), 2))
        pool.append(
            [lambda x=x, y=y: x * y, lambda x=x, y=y: x - y, lambda x=x: mg.sin(x)][
                rng.integers(3)
            ]()
        )
    return mg.draw(pool[-1].sum())


@graph
def operators_20000():
    """20,000 operators: 10,000 products with one weight, and sines"""
    x = h = scalar(0.5)
    for _ in range(10_000):
        h = mg.sin(h) * x
    return mg.draw(h, names={"x": x, "y": h})


# ---- programs -------------------------------------------------------------------------------


def program(build: Callable[[Any, Any], Any], shape: tuple[int, ...] = (), run: Any = None) -> Any:
    """The picture of a program with its backward part, of a run if something is fed."""
    made = static.Program()
    with static.program_guard(made):
        x, w = static.data("x", shape), static.parameter("w", np.full(shape, 0.5))
        y = build(x, w)
        static.append_backward(mg.square(y) if y.shape == () else mg.sum(y))
    if run is None:
        return mg.draw(made)
    scope = static.Scope()
    static.Executor().run(made, {"x": np.asarray(run, float)}, [y], scope=scope)
    return mg.draw((made, scope))


@graph
def program_shared():
    """A program that reads one weight twice"""
    return program(lambda x, w: mg.tanh(x * w) * w, (2,))


@graph
def program_mlp():
    """A program: two layers, backward, SGD, after a run"""
    made = static.Program()
    with static.program_guard(made):
        x, t = static.data("x", (-1, 4)), static.data("t", (-1, 2))
        w1, w2 = static.parameter("w1", np.ones((4, 3))), static.parameter("w2", np.ones((3, 2)))
        loss = mg.mean(mg.square(mg.relu(x @ w1) @ w2 - t))
        static.SGD(lr=0.1).minimize(loss)
    scope = static.Scope()
    feed = {"x": np.ones((5, 4)), "t": np.zeros((5, 2))}
    static.Executor().run(made, feed, [loss], scope=scope)
    return mg.draw((made, scope))


@graph
def program_adam():
    """A program with four layers and Adam"""
    made = static.Program()
    with static.program_guard(made):
        h = static.data("x", (-1, 4))
        for k in range(4):
            h = mg.tanh(
                mg.linear(
                    h,
                    static.parameter(f"w{k}", np.ones((4, 4))),
                    static.parameter(f"b{k}", np.ones(4)),
                )
            )
        static.Adam(lr=0.1).minimize(mg.mean(h))
    return mg.draw(made)


@graph
def program_while():
    """A loop"""
    return program(
        lambda x, w: static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [0, x])[1]
    )


@graph
def program_while_run():
    """A loop after a run"""
    return program(
        lambda x, w: static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [0, x])[1],
        run=8.0,
    )


@graph
def program_cond():
    """A branch"""
    return program(lambda x, w: static.cond(x > 0, lambda: x * w, lambda: mg.exp(x) * w))


@graph
def program_cond_run():
    """A branch after a run"""
    return program(lambda x, w: static.cond(x > 0, lambda: x * w, lambda: mg.exp(x) * w), run=-2.0)


@graph
def program_nested():
    """A branch inside a loop"""

    def body(w):
        return lambda i, s: (i + 1, static.cond(s.sum() > 0, lambda: s * w, lambda: mg.sin(s)))

    return program(lambda x, w: static.while_loop(lambda i, s: i < 3, body(w), [0, x])[1])


@graph
def program_nested_loops():
    """A loop inside a loop, after a run"""

    def inner(w, s):
        return static.while_loop(lambda j, t: j < 2, lambda j, t: (j + 1, t * w), [0, s])[1]

    def build(x, w):
        return static.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, inner(w, s)), [0, x])[1]

    return program(build, run=2.0)


@graph
def program_rnn():
    """A static recurrent net"""
    made = static.Program()
    with static.program_guard(made):
        x, w = static.data("x", (5, 2, 3)), static.parameter("w", np.ones((3, 3)))

        def step(x_t, h):
            new = mg.tanh(x_t @ w + h)
            return [new], [new]

        outputs, _ = static.static_rnn(step, [x], [static.data("h0", (2, 3))])
        static.append_backward(mg.mean(outputs[0]))
    return mg.draw(made)


@graph
def program_second():
    """Second derivatives in a program"""
    made = static.Program()
    with static.program_guard(made):
        x = static.parameter("x", np.array(0.5))
        y = mg.sin(x) * mg.square(x)
        (g,) = static.gradients([y], [x])
        static.gradients([g], [x])
    return mg.draw(made)


@graph
def program_zeros_and_pruned():
    """Zero gradients and pruned operators"""
    made = static.Program()
    with static.program_guard(made):
        x, z = static.parameter("x", np.ones(4)), static.data("z", (2,))
        a, _ = mg.split(x, 2)
        static.append_backward((a * mg.relu(z)).sum())
    return mg.draw(made, detail="pruned")


@graph
def program_2000():
    """A program of 2,000 operators"""
    made = static.Program()
    with static.program_guard(made):
        h, w = static.data("x", (2,)), static.parameter("w", np.ones(2))
        for _ in range(1000):
            h = mg.tanh(h * w)
        static.append_backward(h.sum())
    return mg.draw(made)


@graph
def program_many_conds():
    """Sixty branches in a row"""
    made = static.Program()
    with static.program_guard(made):
        x, w = static.data("x", [3]), static.parameter("w", np.ones(3))
        y = w * x
        for _ in range(60):
            y = static.cond(y.sum() > 0, lambda y=y: mg.tanh(y), lambda y=y: mg.sin(y) * w)
        static.append_backward(y.sum())
    return mg.draw(made)


# ---- nets, modules, scopes ------------------------------------------------------------------


def layer(name: str, x: str, y: str) -> Any:
    return net.NetOp(
        [
            net.Operator("mul", {"x": x, "y": "W"}, {"out": f"{y}_z"}),
            net.Operator("sigmoid", {"x": f"{y}_z"}, {"out": y}),
        ],
        name,
    )


@graph
def net_op():
    """Nested nets of operators, and the net that Backward makes of them"""
    mlp = net.NetOp([layer("fc1", "x", "h"), layer("fc2", "h", "y")], "mlp")
    return mg.draw((mlp, net.Backward(mlp, no_grad={"x"})))


@graph
def rnn_op():
    """An operator that runs a step net once per element of a sequence, and its grad op"""
    step = net.NetOp(
        [
            net.Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "z"}),
            net.Operator("add", {"x": "x", "y": "z"}, {"out": "h"}),
        ],
        "step",
    )
    rnn = net.RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"})
    return mg.draw((rnn, net.Backward(rnn)))


@graph
def module():
    """A module of twelve layers"""
    return mg.draw(nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)]))


@graph
def nested_module():
    """A module of modules of modules: their frames stand beside each other"""

    def stage(depth: int) -> Any:
        if depth == 0:
            return nn.Linear(4, 4)
        return nn.Sequential(stage(depth - 1), nn.Sequential(stage(0), nn.LayerNorm(4)), stage(0))

    return mg.draw(stage(3))
