"""One module of checkers per part of the course; the last step, whose notebook imports from it, has its own.

A checker takes the learner's own object and raises `Mismatch` when it does something else than
asked for.  Modules are loaded on the first ``check``.
"""
