"""Where things lie in a checkout: data only."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
BUILT = TOOLS / "bin"
"""What `make tools` builds."""
UNPACKED = TOOLS / "debian"
"""Debian packages, unpacked here instead of installed."""
RUN = ROOT / ".run"
"""What `make up` writes: generated files, data, logs."""
PROCFILE = ROOT / "Procfile"
DEMO = ROOT / "simulator" / "demo.yml"
