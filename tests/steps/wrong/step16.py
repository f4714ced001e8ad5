"""Plausible wrong answers to the exercises of step 16: every one must fail its check."""


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
        (lambda W, T: W ** (T - 1),),
        (lambda W, T: T * W,),
        (lambda W, T: W,),
        (lambda W, T: W**T if T else 0.0,),
        (lambda W, T: abs(W) ** T,),
    ],
}
