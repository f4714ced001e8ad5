"""Passes over a schedule, one function per file; `pipeline` has them in order."""
