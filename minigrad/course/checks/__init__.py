"""What checks go by: the functions in `checkers`, loaded on the first ``check``, and a table per step; planted bugs."""
