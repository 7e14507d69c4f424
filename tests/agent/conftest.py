from __future__ import annotations

import sys
from pathlib import Path

# The scripted server is the models' own; it is found here too when these tests are run alone.
sys.path.append(str(Path(__file__).parent.parent / "models"))
