"""Tests import the scripts and helpers as `benchmarks.<folder>.<module>`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
