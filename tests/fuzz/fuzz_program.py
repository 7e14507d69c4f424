"""One run of the fuzzer (atheris): TARGET FOLDER CORPUS SECONDS. New inputs and crashes are left in the folder.

It is started with the interpreter that has atheris, and finds everything else where the tests have it.
"""

from __future__ import annotations

import importlib
import sys

atheris = importlib.import_module("atheris")
target, folder, corpus, seconds = sys.argv[1:]
with atheris.instrument_imports(include=["commonplace"]):
    targets = importlib.import_module("fuzz.targets")

found = f"{folder}/found"
importlib.import_module("os").makedirs(found, exist_ok=True)
options = [
    f"-max_total_time={seconds}",
    "-max_len=4096",
    "-timeout=20",
    "-rss_limit_mb=4096",
    f"-artifact_prefix={folder}/",
]
atheris.Setup([sys.argv[0], found, corpus, *options, "-print_final_stats=1"], targets.TARGETS[target])
atheris.Fuzz()
