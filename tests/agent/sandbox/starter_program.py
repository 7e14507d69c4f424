"""Starts a confined command, waits for the end of its input, and kills itself: `… WAY FOLDER SCRIPT`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

from commonplace.agent.sandbox import SandboxPolicy, confine, detection
from commonplace.agent.tools.processes import Launch

way, folder, script = sys.argv[1:]
policy = SandboxPolicy(mode="workspace-write", cwd=Path(folder), exclude_slash_tmp=True)
launch = Launch(("/bin/bash", "-c", script), policy.cwd, dict(os.environ))
wrapped = confine(launch, policy, detection.best_support((cast("detection.Way", way),)))
subprocess.Popen(wrapped.command, cwd=wrapped.cwd, stdin=subprocess.DEVNULL, start_new_session=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
