"""The earlier design."""
