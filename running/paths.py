"""Where things lie in a checkout: data only."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
BUILT = TOOLS / "bin"
"""What `make tools` builds."""
UNPACKED = TOOLS / "debian"
"""Debian packages, unpacked here instead of installed."""
