"""An upload that is killed between the store and the note: HOME ADDRESS FILE."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from commonplace.rollout.store.home_store import HomeStore
from commonplace.rollout.store.upload_notes import UploadNote

home, address, file = sys.argv[1:]
uploads = HomeStore(Path(home), address, os.environ).uploads


def die(note: UploadNote) -> None:
    del note
    os.kill(os.getpid(), signal.SIGKILL)


uploads.notes.write = die
uploads.upload(Path(file))
