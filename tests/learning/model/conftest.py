from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent

# What other tests are made of is found here too when these tests are run alone: sessions in a few words, processes that
# learn, and the models' scripted server.
for folder in (HERE.parent, HERE.parent / "rules", HERE.parent.parent / "models"):
    sys.path.append(str(folder))
