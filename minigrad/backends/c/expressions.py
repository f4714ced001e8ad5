"""One number in C: its type, how it is written, the expressions of `ufuncs.ini` and the functions of `helpers.c`."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import read_tables

DType = np.dtype[Any]
TYPES = {"bool": "uint8_t", "float64": "double", "float32": "float"}
TYPES |= {f"{sign}int{n}": f"{sign}int{n}_t" for sign in ("", "u") for n in (8, 16, 32, 64)}
DTYPES = {ctype: np.dtype(name) for name, ctype in TYPES.items()}
#: variables of loops
LETTERS = [*"ijklmnqruvw", *(f"i{k}" for k in range(32))]
#: what NumPy's functions are in C, by the kind of numbers
EXPRESSIONS = read_tables(Path(__file__).with_name("ufuncs.ini"))
_written = Path(__file__).with_name("helpers.c").read_text(encoding="utf-8")
#: functions: name, for which kinds of numbers, what it does, the text
HELPERS = re.findall(r"^//// (\w+) ([fiu]+)  (.*)\n((?:(?!////).*\n)+)", _written, re.M)
_texts = [text for table in EXPRESSIONS.values() for text in table.values()]
_words = {word for text in _texts for word in re.findall(r"[a-z]\w+", text)}
#: what no variable may be called: functions, and variables of loops
TAKEN = _words | {f"{w}f" for w in _words} | {f"{h}_{t}" for h, *_ in HELPERS for t in DTYPES}
TAKEN |= {"p", "s", "f", "row", "sum", *LETTERS}


def cast(text: str, given: DType, wanted: DType) -> str:
    """An expression in another type.

    >>> cast("x", np.dtype(float), np.dtype(bool)), cast("x", np.dtype(bool), np.dtype(float))
    ('(x != 0)', '(double)x')
    """
    if given == wanted:
        return text
    if wanted.kind == "b":
        return f"({text} != 0)"
    if given.kind == "f" and wanted.kind in "iu":
        text = f"whole_{TYPES[given.name]}({text})"
    return f"({TYPES[wanted.name]}){text}"


def literal(value, dtype: DType) -> str:
    """A number in C.

    >>> literal(0.1, np.dtype("float32")), literal(-2, np.dtype("int64")), literal(float("inf"), np.dtype(float))
    ('0.1f', '(-2)', 'INFINITY')
    """
    if dtype.kind == "f":
        text = str(dtype.type(value)).replace("inf", "INFINITY").replace("nan", "NAN")
        text += "f" * (dtype.itemsize == 4 and text[-1].isdigit())
    else:
        number = int(value)
        text = str(number)
        if number == -(2**63):
            return "INT64_MIN"
        if abs(number) >= 2**31:
            text = f"{'U' * (dtype.kind == 'u')}INT64_C({text})"
    return f"({text})" if text.startswith("-") else text


def neutral(ufunc, dtype: DType) -> Any:
    """What a reduction of nothing comes to."""
    if ufunc.identity is not None:
        return ufunc.identity
    limits = (-np.inf, np.inf) if dtype.kind == "f" else (0, 1)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype).min, np.iinfo(dtype).max
    return limits[ufunc is np.minimum]


def expression(name: str, dtype: DType) -> str | None:
    """The C of a function of numbers of a dtype.

    >>> expression("tanh", np.dtype("float32")), expression("tanh", np.dtype(int))
    ('tanhf({0})', None)
    """
    kind = "i" if dtype.kind == "u" else dtype.kind
    for section in ["loops"] * (kind == "f") + [kind, "any"]:
        if text := EXPRESSIONS.get(section, {}).get(name):
            text = text.replace("{T}", TYPES[dtype.name])
            return text.replace("{f}", "f" * (dtype.itemsize == 4))
    return None


def helpers_in(text: str) -> str:
    """The helper functions that a text calls, for the types it calls them with."""
    out = ""
    for helper, kinds, about, code in reversed(HELPERS):
        for ctype, dtype in DTYPES.items():
            if dtype.kind not in kinds:
                continue
            call = rf"\b{helper}_{ctype}\(".replace("NAME", r"(\w+)")
            for name in sorted({*re.findall(call, text + out)}):
                each = str(expression(name, dtype)).format("x[i * xs]", "y[i * ys]")
                said = code.strip().replace("EXPRESSION", each).replace("NAME", name)
                said = re.sub(r"\bT\b|(?<=_)T\b", ctype, said)
                out = f"/* {about} */\n{said}\n\n{out}"
    return _written.partition("////")[0] * ("loop numpy_" in out) + out
