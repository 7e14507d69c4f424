from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent

# What other tests are made of is found here too when these tests are run alone.
for folder in (HERE.parent, HERE.parent / "embedded", HERE.parent / "consolidation", HERE.parent.parent / "models"):
    sys.path.append(str(folder))
