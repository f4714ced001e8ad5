"""The fuzzers find bugs: a sample of the list; ``python -m tests.campaign bugs`` tries all."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.trust.altered import source_of
from tests.trust.bug_list import BUGS
from tests.trust.mutants import mutants, mutated
from tests.trust.seeded_bugs import find_all

ROOT = Path(__file__).parents[2]
SAMPLE = (
    "a value without a graph keeps that of the old one",
    "the last path wins, nothing is added up",
    "a leaf runs before its last user",
    "what a hook returns is dropped",
    "all reached nodes are freed, not those that ran",
    "broadcast gradients are not summed",
    "matrix product: the first factor is not transposed",
    "every temporary has the same name",
    "a missing gradient is not filled with zeros",
    "a parameter's gradient is that of the first step",
    "the other branch is differentiated",
)


def test_the_list_has_more_than_forty_bugs_and_each_fits_the_source():
    assert len({b.name for b in BUGS}) == len(BUGS) > 40
    for bug in BUGS:
        ast.parse(bug.apply(source_of(bug.module)))


def test_the_fuzzers_find_a_sample_of_bugs_within_a_few_programs():
    found = find_all([b for b in BUGS if b.name in SAMPLE], programs=60)
    assert len(found) == len(SAMPLE)
    assert all(f.startswith("found by") for f in found.values()), found


def test_nothing_is_found_where_there_is_no_bug():
    command = [sys.executable, "-m", "tests.trust.seeded_bugs", "20", "-1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["not found"]


def test_every_mutant_of_a_module_is_a_program_of_its_own():
    source = source_of("minigrad.eager.mode")
    found = mutants(source)
    texts = {ast.unparse(mutated(source, m.number)) for m in found}
    assert len(texts) == len(found) > 10
    assert ast.unparse(ast.parse(source)) not in texts


def test_all_mutants_of_softmax_are_found_by_its_tests():
    """Engine and builder are sampled by the list of bugs above; docs/trust.md has the scores of whole modules."""
    records, corners = "tests/ops/test_records.py", "tests/ops/test_reduce.py"
    values = "test_arrays_and_tensors_get_the_value_and_dtype_of_the_reference"
    slopes = "test_the_gradient_agrees_with_forward_mode_of_the_reference"
    default = "test_an_attr_that_is_not_given_has_the_value_of_this_table"
    tests = [f"{records}::{t}[{op}]" for t in (values, slopes) for op in ("softmax", "log_softmax")]
    tests += [f"tests/ops/test_defaults.py::{default}[{op}]" for op in ("softmax", "log_softmax")]
    tests += [
        f"{corners}::test_softmax_takes_whole_numbers",
        f"{corners}::test_softmax_of_nothing_is_nothing",
        f"{corners}::test_softmax_of_large_scores_has_no_overflow",
    ]
    command = [sys.executable, "-m", "tests.campaign", "mutate", "--workers", "2"]
    command += ["--module", "minigrad.ops.softmax", *(f"--tests={t}" for t in tests)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    found, total = map(int, re.findall(r"(\d+) of (\d+) mutants found", done.stdout)[0])
    assert found == total >= 20, done.stdout
