"""A Program as C: its text, and the text compiled."""
