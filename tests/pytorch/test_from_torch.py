"""static.from_torch: torch's forward, our backward, and torch's gradients as the judge."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch.export warns of its own code

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad import static  # noqa: E402
from minigrad.errors import ProgramError  # noqa: E402
from tests.pytorch import models  # noqa: E402

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}


def gradients(program, examples):
    """The sum of the first output of a Program, and the gradients of its parameters, by name."""
    with static.program_guard(program):
        loss = mg.sum(program.global_block().vars[program.outputs[0]])
        pairs = static.append_backward(loss)
    static.verify(program)
    feed = {n: e.detach().numpy() for n, e in zip(program.inputs, examples, strict=True)}
    results = static.Executor().run(program, feed=feed, fetch_list=[loss, *(g for _, g in pairs)])
    return float(results[0]), {
        p.name: np.asarray(r) for (p, _), r in zip(pairs, results[1:], strict=True)
    }


def assert_same(function, leaves, examples, tolerance):
    """Value and gradients are torch's, each relative to its largest number."""
    value, ours = gradients(static.from_torch(function, *examples), examples)
    out = function(*examples)
    out = (out[0] if isinstance(out, tuple) else out).sum()
    theirs = torch.autograd.grad(out, list(leaves.values()))
    assert abs(value - out.item()) <= tolerance * max(1, abs(out.item()))
    assert {*ours} == {*leaves}
    for name, g in zip(leaves, theirs, strict=True):
        error = abs(ours[name] - g.numpy()).max(initial=0)
        assert error <= tolerance * max(1.0, float(g.abs().max())), name
        assert ours[name].dtype == g.numpy().dtype


MODELS = {
    "mlp": (models.mlp, lambda t: [torch.randn(5, 8, dtype=t)]),
    "cnn": (models.cnn, lambda t: [torch.randn(5, 1, 12, 12, dtype=t)]),
    "cnn in eval mode": (
        lambda: models.cnn().eval(),
        lambda t: [torch.randn(5, 1, 12, 12, dtype=t)],
    ),
    "attention": (lambda: models.Block(16, 4), lambda t: [torch.randn(2, 6, 16, dtype=t)]),
    "fused attention": (
        lambda: models.Block(16, 4, True),
        lambda t: [torch.randn(2, 6, 16, dtype=t)],
    ),
    "gpt": (models.GPT, lambda t: [torch.randint(64, (2, 8)), torch.randint(64, (2, 8))]),
    "resnet": (
        lambda: models.ResNet18(4, 10).eval(),
        lambda t: [torch.randn(2, 3, 32, 32, dtype=t)],
    ),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_a_model_are_those_of_torch(name, dtype):
    torch.manual_seed(0)
    build, examples = MODELS[name]
    model = build().to(dtype)
    assert_same(model, dict(model.named_parameters()), examples(dtype), TOLERANCE[dtype])


OPS = {
    "addmm": lambda x, y: torch.addmm(x[:, 0], x, y.t(), beta=2, alpha=0.5),
    "add and sub with alpha": lambda x, y: torch.add(x, y, alpha=2) * torch.sub(x, y, alpha=3),
    "numbers on the left": lambda x, y: 2 - x / (1 + y * y) + 3 ** (x / 4),
    "rsqrt and exp2": lambda x, y: torch.rsqrt(x * x + 1) * torch.exp2(y),
    "activations": lambda x, y: F.gelu(x) + F.gelu(y, approximate="tanh") + F.silu(x) + F.mish(y),
    "more activations": lambda x, y: F.elu(x, 0.5) + F.selu(y) + F.softplus(x, 2) + F.logsigmoid(y),
    "bounded activations": lambda x, y: F.hardtanh(x) + F.relu6(y * 4) + F.hardswish(x),
    "leaky": lambda x, y: F.leaky_relu(x, 0.2) * F.leaky_relu(y),
    "activations of large numbers": lambda x, y: F.softplus(x * 1e4) + F.mish(y * 1e4) + F.celu(x * 1e4, 2.0) + F.celu(y),
    "quotients without a rest": lambda x, y: (torch.div(x, 0.1, rounding_mode="floor") + torch.div(x, y, rounding_mode="trunc")) * y,
    "variances as they were asked for once": lambda x, y: x.var(0, unbiased=False) + y.std(0, False) + x.var(unbiased=False) + y.var(1, True, True).sum(),
    "what no_grad computes": lambda x, y: _unrecorded(x) * x + y,
    "clamp": lambda x, y: x.clamp(-0.5, 0.7) + y.clamp(min=0) * x.clamp_max(0.1),
    "where and masks": lambda x, y: torch.where(x > y, x * 2, y).masked_fill(x > 1, 0.5),
    "reductions": lambda x, y: x.sum(0) + y.mean(0, keepdim=True) - x.var(0) + y.std(0, correction=0),
    "max and min": lambda x, y: x.max() + y.min() + x.max(1).values.sum() + y.amax((0, 1)) + x.amin(0),
    "norms": lambda x, y: x.norm() + torch.linalg.vector_norm(y, dim=1) + F.normalize(x, dim=1).sum(),
    "softmaxes": lambda x, y: (x.softmax(0) * y.log_softmax(1)).sum(1) + torch.logsumexp(x, 1),
    "shapes": lambda x, y: x.t().reshape(2, 10)[:, 1:7].permute(1, 0).flatten() * y.view(-1)[:12],
    "squeezes": lambda x, y: x.unsqueeze(1).expand(4, 3, 5).squeeze(-1) * y[:, None],
    "joins": lambda x, y: torch.cat([x, y], 1) * torch.stack([x, y], 1).flatten(1),
    "splits": lambda x, y: x.split(2, 1)[0] * y.chunk(3, 1)[1] + x.split([2, 3], 1)[0] * y.unbind(1)[0][:, None],
    "indices": lambda x, y: x[[0, 2, 2]] + y[1:, 1:2] + x[:, -1].sum() + x[0, 0],
    "gather": lambda x, y: y * x.gather(1, y.argsort(1)) + x.index_select(0, torch.tensor([1, 0, 3, 1])),
    "flips and rolls": lambda x, y: x.flip(1) * y.roll(2, 1) + x.roll((1, 2), (0, 1)),
    "triangles": lambda x, y: x.tril() + y.triu(1) + torch.diagonal(x).sum(),
    "repeats": lambda x, y: x.repeat(2, 1) * y.tile((2, 1)),
    "pads": lambda x, y: F.pad(x, (1, 2)) * F.pad(y, (2, 1), value=3.0),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "einsum of three": lambda x, y: torch.einsum("ij,kj,kl -> il", x, y, y),
    "rows without a gradient": lambda x, y: F.embedding(torch.tensor([1, 3, 1]), x, padding_idx=1) * y[:3],
    "a number in place on a view": lambda x, y: _set_column(x * y, 0.5) * y,
    "cumsum and prod": lambda x, y: x.cumsum(1) * y.prod(1, keepdim=True),
    "top and sorted": lambda x, y: x.topk(2, 1).values + y.sort(1).values[:, :2],
    "sorted stably": lambda x, y: x.sort(dim=0, descending=True, stable=True).values * y,
    "inverse": lambda x, y: torch.linalg.inv(x @ y.t() + 9 * torch.eye(4)),
    "losses": lambda x, y: F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y, delta=0.5),
    "cross entropies": lambda x, y: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])) + F.nll_loss(y.log_softmax(1), torch.tensor([4, 1, 2, 3]), reduction="sum"),
    "soft targets": lambda x, y: F.cross_entropy(x, y.softmax(1).detach()) + y.sum(),
    "binary losses": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()) + F.binary_cross_entropy(x.sigmoid(), (y > 0).to(x.dtype)),
    "in place": lambda x, y: (x * 2).add_(y).mul_(x).clamp_(-3, 3),
    "in place on a view": lambda x, y: _set_row(x * 1, y),
    "slices written to": lambda x, y: _set_slices(x * 1, y) + _set_slices(y * 1, x[:, :1]),
    "detach": lambda x, y: x * y.detach() + y,
    "norm layers": lambda x, y: F.layer_norm(x, (5,)) + F.rms_norm(y, (5,)) + F.group_norm(x, 5),
    "made from a shape": lambda x, y: x * torch.arange(5, dtype=x.dtype) + torch.ones_like(y) + torch.eye(4, 5, dtype=x.dtype) * y,
    "comparisons": lambda x, y: (x > 0).to(x.dtype) * y + (y <= x).to(x.dtype) * x,
    "convolution 1d": lambda x, y: F.conv1d(x[:, None], y[:2, None, :3], padding="same", dilation=2),
    "convolution 2d": lambda x, y: F.conv2d(x[None, None], y[:2, None, None, :3], stride=(2, 1), padding=(0, 1)),
    "transposed convolution": lambda x, y: F.conv_transpose2d(x[None, None], y[None, :2, None, :2], stride=2, output_padding=1),
    "pools": lambda x, y: F.max_pool2d(x[None, None], 2) + F.avg_pool2d(y[None, None], 2, padding=0),
    "resizing": lambda x, y: F.interpolate(x[None, None], scale_factor=2) * F.interpolate(y[None, None], size=(8, 10), mode="bilinear"),
    "a transposed convolution 1d": lambda x, y: F.conv_transpose1d(x[None], y[:, None, :3].expand(4, 2, 3), stride=2, padding=1, output_padding=1),
    "instances": lambda x, y: F.instance_norm(x[None], weight=y[:, 0], bias=y[:, 1]),
    "averages without the border": lambda x, y: F.avg_pool2d((x * y)[None, None], 3, 2, 1, count_include_pad=False),
    "adaptive maxima": lambda x, y: F.adaptive_max_pool2d((x * y)[None, None, :, :4], (2, 2)),
    "pads that cut off": lambda x, y: F.pad(x, (-1, 2, 1, -1)) * F.pad(y, (1, 0)),
    "pads of several axes": lambda x, y: F.pad(x, (0, 2, 1, 0)) * F.pad(y, (1, 1), value=0.5)[:, :, None].sum(2).mean(),
    "adaptive averages": lambda x, y: F.adaptive_avg_pool2d((x * y)[None, None], (2, 3)) + F.adaptive_avg_pool2d(x[None, None], 1),
    "spread of what is constant": lambda x, y: torch.std_mean(x * 0)[0] + torch.var_mean(y * 0, 1)[0].sum() + x,
    "scattered": lambda x, y: (x * 1).scatter(1, _PLACES, y) + x.scatter(0, _PLACES[:2, :2], 3.0) * y,
    "scattered and added": lambda x, y: x.scatter_add(0, _PLACES[:3, :4].clamp(max=3), y[:3, :4]) * x.scatter_reduce(1, _PLACES, y, "sum"),
    "rows added": lambda x, y: x.index_add(0, torch.tensor([1, 1, 3]), y[:3], alpha=0.5) * x.index_copy(0, torch.tensor([2, 0]), y[:2]),
    "pairs added": lambda x, y: x.index_put((torch.tensor([1, 1, 3]), torch.tensor([2, 2, 0])), y[:3, 0], accumulate=True),
    "masks written to": lambda x, y: _set(x * y, x > 0, 0.5) * _set(y * 1, torch.tensor([True, False, True, False]), 2.0),
    "a column written to by its mask": lambda x, y: _set(x * y, (slice(None), torch.arange(5) > 2), 0.0) * y,
    "a smaller index": lambda x, y: x.gather(1, _PLACES[:2, :2]) * y[:2, :2],
    "folded windows": lambda x, y: F.fold(F.unfold(x[None, None], 2), (4, 5), 2)[0, 0] * y + x.unfold(1, 3, 1).sum((1, 2))[:, None],
    "running products": lambda x, y: x.cumprod(1) * y,
    "truncated": lambda x, y: torch.trunc(x * 3) * y + torch.frac(x),
    "the nearest": lambda x, y: x[torch.cdist(y, x).argmin(1)] + torch.cdist(x, y) @ y + torch.dist(x, y),
    "any and all": lambda x, y: (x > 0).any(1, keepdim=True) * y + (x > -9).all() * x,
    "means with variances": lambda x, y: torch.var_mean(x, 1)[0] * torch.std_mean(y, 1)[0] + torch.std_mean(y)[0],
    "larger of two": lambda x, y: torch.max(x, y) * torch.min(x, y),
    "bounds that are Tensors": lambda x, y: x.clamp(y - 0.5, y + 0.5) + x.clamp(min=y) * y.clamp(max=x),
    "vectors": lambda x, y: torch.addmv(x[:, 0], x, y[0]),
    "solved": lambda x, y: torch.linalg.solve(_definite(x), y) + torch.linalg.solve(_definite(y), x[:, 0])[:, None],
    "triangular": lambda x, y: torch.linalg.solve_triangular(torch.linalg.cholesky(_definite(x)), y, upper=False),
    "stacks of vectors": lambda x, y: torch.linalg.solve(
        torch.stack([_definite(x), _definite(y)]), torch.stack([x[:, 0], y[:, 1]])
    ),
    "upper factors": lambda x, y: torch.linalg.cholesky(_definite(x), upper=True) @ y,
    "determinants": lambda x, y: torch.linalg.det(_definite(x)[None]) * y.sum(),
    "dropout at rest": lambda x, y: F.dropout(x, 0.5, training=False) * y,
}  # fmt: skip


_PLACES = (torch.arange(4)[:, None] + torch.arange(5)) % 5


def _definite(x):
    return x @ x.t() + 3 * torch.eye(4, dtype=x.dtype)


def _set(x, index, number):
    x[index] = number
    return x


@torch.no_grad()
def _unrecorded(x):
    half = x.exp()
    with torch.no_grad():
        return half * x


def _set_row(x, y):
    x[1] = y[0] * 2
    return x * x


def _set_slices(x, y):
    x[1:3] = y[:2] * 2
    x[:, ::2] += y[:, :1]
    x[..., -2:] *= x[..., :2].clone()
    x[3:9].zero_()
    return x * x


def _set_column(x, number):
    x[:, 2] = number
    return x


@pytest.mark.parametrize("name", OPS)
def test_gradients_of_an_operation_are_those_of_torch(name):
    torch.manual_seed(1)
    leaves = {n: nn.Parameter(torch.randn(4, 5, dtype=torch.float64)) for n in "xy"}
    holder, function = nn.ParameterDict(leaves), OPS[name]

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.x, self.y = holder["x"], holder["y"]

        def forward(self, one):
            return function(self.x * one, self.y)

    assert_same(Module(), leaves, [torch.ones((), dtype=torch.float64)], 1e-12)


def test_a_function_finds_its_modules_and_parameters():
    model, scale = nn.Linear(3, 2), nn.Parameter(torch.tensor(2.0))
    program = static.from_torch(lambda x: model(x).sum() * scale, torch.ones(4, 3))
    assert sorted(v.name for v in program.parameters()) == ["model.bias", "model.weight", "scale"]
    assert program.inputs and len(program.outputs) == 1


def test_frozen_parameters_get_no_gradient_and_shared_ones_one():
    model = models.GPT(layers=1)
    model.wpe.weight.requires_grad_(False)
    idx = torch.randint(64, (2, 8))
    _, ours = gradients(static.from_torch(model, idx, idx), [idx, idx])
    assert "wpe.weight" not in ours and "lm_head.weight" not in ours and "wte.weight" in ours


def test_torchs_model_stays_as_it_was():
    model = models.cnn()
    before = {n: (id(t), t.clone(), t._version) for n, t in model.state_dict().items()}
    static.from_torch(model, torch.randn(2, 1, 12, 12))
    after = model.state_dict()
    assert all(
        torch.equal(t, after[n]) and after[n]._version == v for n, (_, t, v) in before.items()
    )
    assert model.training and all(p.grad is None for p in model.parameters())


def test_a_program_of_torch_is_a_program_like_any_other():
    model = models.mlp()
    x = torch.randn(5, 8)
    program = static.from_torch(model, x)
    step = static.compile(program, fetch=program.outputs)
    assert np.allclose(
        np.asarray(step({program.inputs[0]: x.numpy()})[0]), model(x).detach(), atol=1e-6
    )
    assert static.parse(str(program)).outputs == program.outputs or str(static.parse(str(program)))
    assert "2.bias" in mg.draw(program).text
    static.append_backward(mg.sum(program.global_block().vars[program.outputs[0]]))
    assert "0.weight" in str(mg.why(program.global_block().vars["0.weight"]))


def test_all_operations_without_a_counterpart_are_named_at_once():
    class Strange(nn.Module):
        def forward(self, x):
            u, s, v = torch.linalg.svd(x)
            return (
                torch.fft.fft(s).real.sum() + torch.special.i0(x).sum() + torch.rand_like(x).sum()
            )

    with pytest.raises(ProgramError) as error:
        static.from_torch(Strange(), torch.eye(3))
    text = str(error.value)
    for name in ("_linalg_svd", "_fft", "i0", "rand"):
        assert f"aten.{name}" in text
    assert "u, s, v = torch.linalg.svd(x)" in text and "repair" in text


@pytest.mark.parametrize(
    "noise",
    [
        lambda: torch.empty(3).exponential_(),
        lambda: torch.multinomial(torch.ones(3), 3),
        lambda: torch.poisson(torch.ones(3)),
        lambda: torch.randint_like(torch.ones(3), 4),
        lambda: torch.zeros(3).cauchy_(),
        lambda: torch.distributions.Gamma(1.0, 1.0).sample((3,)),
        lambda: F.dropout(torch.ones(3), 0.5),
    ],
)
def test_random_numbers_are_refused_though_they_depend_on_no_input(noise):
    with pytest.raises(ProgramError, match="no counterpart") as error:
        static.from_torch(lambda x: x * noise(), torch.ones(3))
    assert "eval_with_key" not in str(error.value)
    assert "comes in as an input" in str(error.value) or "model.eval()" in str(error.value)


@pytest.mark.parametrize(
    ("words", "function"),
    {
        "max_pool2d.* with ceil_mode": nn.MaxPool2d(2, ceil_mode=True),
        "scatter_reduce.* with reduce='amax'": lambda x: x.scatter_reduce(3, torch.zeros_like(x).long(), x, "amax"),
        "scatter_reduce.* with reduce='sum', include_self=False": lambda x: x.scatter_reduce(3, torch.zeros_like(x).long(), x, "sum", include_self=False),
        "scatter .*'reduce'": lambda x: torch.scatter(x, 3, torch.zeros_like(x).long(), x, reduce="add"),
        "scaled_dot_product_attention .*'enable_gqa'": lambda x: F.scaled_dot_product_attention(x, x, x, enable_gqa=True),
        "linalg_solve_ex .*'left'": lambda x: torch.linalg.solve(torch.eye(5), x, left=False),
    }.items(),
)  # fmt: skip
def test_options_without_a_counterpart_are_named(words, function):
    with pytest.raises(ProgramError, match=f"aten._?{words}.*\n.*\n  repair: "):
        static.from_torch(function, torch.ones(1, 1, 5, 5))


def test_dropout_in_training_is_refused_with_what_turns_it_off():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    for function in (layer, lambda x: F.dropout(x, 0.5)):
        with pytest.raises(ProgramError, match=r"with a probability: model\.eval\(\)") as error:
            static.from_torch(function, torch.ones(1, 3, 4))
        assert "from_torch.py" not in str(error.value).replace("test_from_torch.py", "")


@pytest.mark.parametrize(
    "function",
    [
        *(F.hardtanh, F.relu6, F.hardswish, F.hardsigmoid, F.softplus, F.mish),
        lambda x: x.clamp(-3, 6),
        lambda x: x[None].expand(3, -1).max(0).values,
        lambda x: x.repeat(2).min(-1)[0],
        lambda x: x.clamp(torch.full((9,), -3.0), x.detach()),
        lambda x: torch.max(x, x.abs()) + torch.min(x, x.round()),
        lambda x: (x * 0).std() + (x * 0).std(0, False) + x,
        lambda x: F.binary_cross_entropy(x.clamp(0, 1), (x > 2).to(x.dtype), reduction="sum"),
    ],
)
def test_at_kinks_and_ties_the_slope_is_torchs(function):
    points = [-1e4, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 1e4]
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    program = static.from_torch(function, x)
    with static.program_guard(program):
        (out,), (fed,) = (
            map(program.global_block().var, n) for n in (program.outputs, program.inputs)
        )
        ours = static.gradients(out, fed)
    (g,) = static.Executor().run(
        program, feed={program.inputs[0]: x.detach().numpy()}, fetch_list=ours
    )
    np.testing.assert_allclose(g, torch.autograd.grad(function(x).sum(), x)[0], rtol=1e-7)


def test_a_row_of_attention_that_sees_nothing_is_zero_and_not_nan():
    class Attention(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.q, self.mask = nn.Parameter(torch.randn(2, 3)), mask

        def forward(self, one):
            return F.scaled_dot_product_attention(self.q * one, self.q, self.q, self.mask)

    for mask in ([[True, False], [False, False]], [[0, 1.0], [-np.inf, -np.inf]]):
        attention = Attention(torch.tensor(mask))
        assert_same(attention, {"q": attention.q}, [torch.ones(())], 1e-6)


def test_sums_are_made_in_the_dtype_that_is_asked_for():
    x = torch.tensor([60000.0, 60000.0], dtype=torch.float16)
    program = static.from_torch(lambda x: x.sum(dtype=torch.float32), x)
    (out,) = static.Executor().run(program, feed={"x": x.numpy()}, fetch_list=program.outputs)
    assert out == 120000


def test_what_has_no_value_here_is_refused_by_name():
    whole, values = torch.tensor([5, 6]), torch.ones(4)
    cases = {
        "bitwise_and with integers": (lambda i: i & 6, whole),
        "bitwise_not with integers": (lambda i: ~i, whole),
        "max_pool2d_with_indices for its result number 2": (nn.MaxPool2d(1, return_indices=True), values[None, None, None]),
        "repeat_interleave": (lambda i: torch.repeat_interleave(i), whole),
        "index where its size depends on values": (lambda x: x[x > 0], values),
        "cond": (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), values),
        "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, torch.tensor([3, 0, -1, 1])), values),
    }  # fmt: skip
    for name, (function, example) in cases.items():
        with pytest.raises(ProgramError, match=f"aten.{name}"):
            static.from_torch(function, example)


def test_a_constant_number_may_be_an_output():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.tensor(3))

        def forward(self, x):
            self.n += 1
            return x * 2, self.n

    program = static.from_torch(Counts(), torch.ones(2))
    results = static.Executor().run(
        program, feed={"x": np.ones(2, "f4")}, fetch_list=program.outputs
    )
    assert len(results) == 2 and results[1] == 4


def test_a_repair_is_named_that_fits_what_cannot_be_written_down():
    class Out(list):
        pass

    def slope(x):
        return torch.autograd.grad(x.tanh().sum(), x, create_graph=True)[0]

    def packed(x):
        return nn.GRU(1, 2)(nn.utils.rnn.pack_padded_sequence(x[..., None], [2, 1]))[1]

    x = torch.ones(2, 2, requires_grad=True)
    for function, repair in (
        (slope, "static.gradients"),
        (lambda x: Out([x]), "register_dataclass"),
        (packed, "in place of pack_padded_sequence"),
        (lambda x: F.ctc_loss(x, torch.ones(1, 1).long(), [2], [1]), "that loss in PyTorch"),
    ):
        with pytest.raises(ProgramError, match=repair):
            static.from_torch(function, x)


def test_what_is_computed_under_no_grad_trains_nothing():
    class Tuned(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 1)

        def forward(self, x):
            with torch.no_grad():
                h = self.body(x)
            return self.head(h)

    model, x = Tuned(), torch.randn(2, 3)
    assert {*gradients(static.from_torch(model, x), [x])[1]} == {"head.weight", "head.bias"}


def test_a_function_with_a_backward_of_its_own_is_refused_where_a_graph_is_recorded():
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    def unrecorded(x):
        with torch.no_grad():
            return Straight.apply(x)

    x = torch.ones(2)
    with pytest.raises(ProgramError, match=r"the forward of Straight and loses its backward"):
        static.from_torch(lambda x: Straight.apply(x) * x, x)
    static.from_torch(unrecorded, x)
    assert Straight.apply(x.requires_grad_()).grad_fn is not None  # torch is as before


def test_one_example_twice_is_two_inputs():
    x = torch.randn(2, 3)
    program = static.from_torch(lambda first, second: first - second, x, x)
    feed = {"first": np.ones((2, 3), np.float32), "second": np.zeros((2, 3), np.float32)}
    assert static.Executor().run(program, feed=feed, fetch_list=program.outputs)[0].sum() == 6


def test_an_output_that_is_none_is_left_out():
    x = torch.randn(2, 4, 8)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    program = static.from_torch(lambda x: attention(x, x, x, need_weights=False), x)
    assert len(program.outputs) == 1


def test_feeds_are_called_as_the_arguments_of_a_function():
    layer = nn.Linear(3, 1)
    program = static.from_torch(
        lambda x, y: F.mse_loss(layer(x), y), torch.ones(2, 3), torch.ones(2, 1)
    )
    assert program.inputs == ["x", "y"]
    assert static.from_torch(torch.add, torch.ones(2), torch.ones(2)).inputs == ["args_0", "args_1"]


def test_a_branch_on_a_value_is_refused():
    def function(x):
        return x if x.sum() > 0 else -x

    class Branch(nn.Module):
        def forward(self, x):
            return function(x) if x.max() > 0 else x

    with pytest.raises(ProgramError, match="cannot write this function down"):
        static.from_torch(function, torch.ones(3))
    with pytest.raises(ProgramError, match="function\\(x\\) if x.max"):
        static.from_torch(Branch(), torch.ones(3))


def test_examples_that_the_model_does_not_take_are_told_apart_from_branches():
    with pytest.raises(
        ProgramError, match=r"missing a required argument.*\n.*\n.*model\(x\) must run"
    ):
        static.from_torch(nn.Linear(3, 2))


def test_what_is_not_torchs_is_refused():
    with pytest.raises(ProgramError, match="takes a module or a function"):
        static.from_torch(3, torch.ones(2))
    with pytest.raises(ProgramError, match="examples"):
        static.from_torch(nn.Linear(2, 1), np.ones(2))
