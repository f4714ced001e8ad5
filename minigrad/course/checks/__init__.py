"""One module of checkers per step: ``step03`` holds those of exercises 3a, 3b, …

A checker takes the learner's own object and raises `Mismatch` when it does something else than
asked for.  Modules are loaded on the first ``check`` of their step.
"""
