-- The index of session files: one row per file, rebuilt from the files alone.
CREATE TABLE threads (
  path           TEXT PRIMARY KEY,          -- where the file is; a moved file is a new row
  home           TEXT NOT NULL,             -- which home it stands in: ours, or a Codex home that was listed
  thread_id      TEXT NOT NULL,             -- the conversation
  rollout_id     TEXT NOT NULL,             -- the file: differs from thread_id once a thread was reverted
  is_current     BIGINT NOT NULL DEFAULT 1, -- 0 for files that a later one of the same thread replaced
  size           BIGINT NOT NULL,           -- with mtime_ns: how an unchanged file is recognised
  mtime_ns       BIGINT NOT NULL,           -- the other half of that
  scanned        BIGINT NOT NULL,           -- bytes seen so far, so that growth costs only what was added
  is_complete    BIGINT NOT NULL,           -- 0 when only head and tail were looked at
  turn_state     BIGINT NOT NULL,           -- state of the turn count at `scanned`
  source         TEXT NOT NULL,             -- cli, exec, vscode, subagent:…
  cwd            TEXT NOT NULL,             -- where the session started
  project        TEXT NOT NULL,             -- repository identity, else the cwd
  git_branch     TEXT,                      -- as noted when the session started
  git_commit     TEXT,                      -- the same
  git_url        TEXT,                      -- the remote that the project's identity comes from
  model          TEXT,                      -- of the newest turn
  name           TEXT,                      -- given by a person, mirrored from session_index.jsonl
  preview        TEXT NOT NULL,             -- the person's first words
  created_at     TEXT NOT NULL,             -- ISO-8601, so that text order is time order
  updated_at     TEXT NOT NULL,             -- time of the newest line
  updated_s      BIGINT NOT NULL,           -- the same in whole seconds: the watermark of extraction
  learned_s      BIGINT NOT NULL DEFAULT -1, -- watermark that was extracted, so that a claim finds work without a join
  is_archived    BIGINT NOT NULL,           -- which of the two trees the file stands in
  is_root        BIGINT NOT NULL,           -- 0 for sub-agents, which listings and learning leave out
  memory_mode    TEXT NOT NULL,             -- enabled, disabled or polluted
  turns          BIGINT,                    -- NULL until the whole file was read
  tokens         BIGINT,                    -- the server's running total
  skipped        BIGINT NOT NULL,           -- lines that could not be used
  base_id        TEXT                       -- of a fork by reference: the rollout it continues
);
CREATE INDEX threads_by_time ON threads (home, is_archived, updated_at DESC, thread_id DESC);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_in_home ON threads (home, thread_id, is_archived, updated_at DESC, path);
CREATE INDEX threads_by_name ON threads (name) WHERE name IS NOT NULL;
CREATE INDEX threads_by_base ON threads (base_id) WHERE base_id IS NOT NULL;
CREATE INDEX threads_to_learn ON threads (home, updated_s DESC, thread_id DESC)
  WHERE updated_s > learned_s AND is_current = 1 AND is_archived = 0 AND is_root = 1 AND memory_mode = 'enabled';

-- Which file refers to which spilled payload: what tells the unreferenced ones.
CREATE TABLE blob_refs (
  sha256 TEXT NOT NULL, -- the blob
  path   TEXT NOT NULL, -- the file that refers to it
  PRIMARY KEY (path, sha256)
);
