-- The index of session files: one row per file, rebuilt from the files alone.
CREATE TABLE threads (
  path           TEXT PRIMARY KEY,           -- where the file is; a moved file is a new row
  home           TEXT NOT NULL,              -- which home it stands in: ours, or a Codex home that was listed
  thread_id      TEXT NOT NULL,              -- the conversation
  rollout_id     TEXT NOT NULL,              -- the file: differs from thread_id once a thread was reverted
  is_current     INTEGER NOT NULL DEFAULT 1, -- 0 for files that a later one of the same thread replaced
  size           INTEGER NOT NULL,           -- with mtime_ns: how an unchanged file is recognised
  mtime_ns       INTEGER NOT NULL,           -- the other half of that
  scanned        INTEGER NOT NULL,           -- bytes seen so far, so that growth costs only what was added
  is_complete    INTEGER NOT NULL,           -- 0 when only head and tail were looked at
  turn_state     INTEGER NOT NULL,           -- state of the turn count at `scanned`
  source         TEXT NOT NULL,              -- cli, exec, vscode, subagent:…
  cwd            TEXT NOT NULL,              -- where the session started
  project        TEXT NOT NULL,              -- repository identity, else the cwd
  git_branch     TEXT,                       -- as noted when the session started
  git_commit     TEXT,                       -- the same
  git_url        TEXT,                       -- the remote that the project's identity comes from
  model          TEXT,                       -- of the newest turn
  name           TEXT,                       -- given by a person, mirrored from session_index.jsonl
  preview        TEXT NOT NULL,              -- the person's first words
  created_at     TEXT NOT NULL,              -- ISO-8601, so that text order is time order
  updated_at     TEXT NOT NULL,              -- time of the newest line
  is_archived    INTEGER NOT NULL,           -- which of the two trees the file stands in
  is_root        INTEGER NOT NULL,           -- 0 for sub-agents, which listings leave out
  memory_mode    TEXT NOT NULL,              -- enabled, disabled or polluted
  turns          INTEGER,                    -- NULL until the whole file was read
  tokens         INTEGER,                    -- the server's running total
  skipped        INTEGER NOT NULL,           -- lines that could not be used
  base_id        TEXT                        -- of a fork by reference: the rollout it continues
);
CREATE INDEX threads_by_time ON threads (home, is_archived, updated_at DESC, thread_id DESC);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_by_name ON threads (name) WHERE name IS NOT NULL;
CREATE INDEX threads_by_base ON threads (base_id) WHERE base_id IS NOT NULL;

-- Which file refers to which spilled payload: what tells the unreferenced ones.
CREATE TABLE blob_refs (
  sha256 TEXT NOT NULL, -- the blob
  path   TEXT NOT NULL, -- the file that refers to it
  PRIMARY KEY (path, sha256)
);
