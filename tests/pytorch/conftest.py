"""Where PyTorch is not installed, only what was recorded of it is tested."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["models.py"]
