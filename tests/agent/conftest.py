from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent

# What other tests are made of is found here too when these tests are run alone: the models' scripted server, servers of
# tools, and what a working tree is.
for folder in (HERE.parent / "models", HERE / "servers", HERE / "undo"):
    sys.path.append(str(folder))
