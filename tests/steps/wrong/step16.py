"""Plausible wrong answers to the exercises of step 16: every one must fail its check."""

from steps.step16_rnn_op import NetOp, Operator, RnnOp, Scope, backward

ENGINE = (RnnOp, NetOp, Operator, Scope, backward)


def states_of(W, h0, xs):
    states = [h0]
    for x in xs:
        states.append(W * states[-1] + x)
    return states


def parts_in_forward_order(W, h0, xs):
    states, T = states_of(W, h0, xs), len(xs)
    return [states[t] * W ** (T - 1 - t) for t in range(T)]


def parts_of_the_state_after(W, h0, xs):
    states, T = states_of(W, h0, xs), len(xs)
    return [states[t + 1] * W ** (T - 1 - t) for t in reversed(range(T))]


def parts_one_step_too_far(W, h0, xs):
    states, T = states_of(W, h0, xs), len(xs)
    return [states[t] * W ** (T - t) for t in reversed(range(T))]


def parts_without_the_way(W, h0, xs):
    return states_of(W, h0, xs)[:-1][::-1]


def walk_forward(step_grad, steps, states_grad):
    state_grad = 0.0
    for step, from_outside in zip(steps, states_grad, strict=True):
        step["h@GRAD"] = from_outside + state_grad
        step_grad.run(step)
        state_grad = step["h_pre@GRAD"]
    return state_grad


def walk_without_handing_on(step_grad, steps, states_grad):
    state_grad = 0.0
    for step, from_outside in zip(reversed(steps), reversed(states_grad), strict=True):
        step["h@GRAD"] = from_outside
        step_grad.run(step)
        state_grad = step["h_pre@GRAD"]
    return state_grad


def walk_from_the_last_state_only(step_grad, steps, states_grad):
    state_grad = states_grad[-1] if states_grad else 0.0
    for step in reversed(steps):
        step["h@GRAD"] = state_grad
        step_grad.run(step)
        state_grad = step["h_pre@GRAD"]
    return state_grad


def walk_that_needs_a_step(step_grad, steps, states_grad):
    state_grad = 0.0
    for step, from_outside in zip(reversed(steps), reversed(states_grad), strict=True):
        step["h@GRAD"] = from_outside + state_grad
        step_grad.run(step)
        state_grad = step["h_pre@GRAD"]
    return steps[0]["h_pre@GRAD"]


def walk_in_the_last_scope(step_grad, steps, states_grad):
    state_grad = 0.0
    for from_outside in reversed(states_grad):
        steps[-1]["h@GRAD"] = from_outside + state_grad
        step_grad.run(steps[-1])
        state_grad = steps[-1]["h_pre@GRAD"]
    return state_grad


WRONG = {
    "16a": [
        (each,)
        for each in (
            parts_in_forward_order,
            parts_of_the_state_after,
            parts_one_step_too_far,
            parts_without_the_way,
        )
    ],
    "16b": [
        (each, *ENGINE)
        for each in (
            walk_forward,
            walk_without_handing_on,
            walk_from_the_last_state_only,
            walk_that_needs_a_step,
            walk_in_the_last_scope,
        )
    ],
    "16c": [
        (lambda W, T: W ** (T - 1),),
        (lambda W, T: T * W,),
        (lambda W, T: W,),
        (lambda W, T: W**T if T else 0.0,),
        (lambda W, T: abs(W) ** T,),
    ],
}
