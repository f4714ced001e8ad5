"""minigrad: learn how gradients are made."""
