"""Passes over a schedule, one function per file; `compiler.step` has them in order."""
