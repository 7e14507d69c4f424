-- Files may be listed in several homes (a Codex file in its own and, once imported, in ours), and imports are remembered.
CREATE TABLE threads_before AS SELECT * FROM threads;
DROP TABLE threads;
CREATE TABLE threads (
  path           TEXT NOT NULL,             -- where the file is; a moved file is a new row
  home           TEXT NOT NULL,             -- whose listing it is in: ours (own, imported, referred to), or a Codex home that was listed
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
  git_url        TEXT,                      -- the remote or the identity that the session noted
  model          TEXT,                      -- of the newest turn
  name           TEXT,                      -- given by a person, mirrored from session_index.jsonl
  title          TEXT,                      -- given by the agent that the session was imported from
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
  base_id        TEXT,                      -- of a fork by reference: the rollout it continues
  PRIMARY KEY (home, path)
);
CREATE INDEX threads_by_time ON threads (home, is_archived, updated_at DESC, thread_id DESC);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_in_home ON threads (home, thread_id, is_archived, updated_at DESC, path);
CREATE INDEX threads_by_name ON threads (name) WHERE name IS NOT NULL;
CREATE INDEX threads_by_base ON threads (base_id) WHERE base_id IS NOT NULL;
CREATE INDEX threads_to_learn ON threads (home, updated_s DESC, thread_id DESC)
  WHERE updated_s > learned_s AND is_current = 1 AND is_archived = 0 AND is_root = 1 AND memory_mode = 'enabled';
INSERT INTO threads (path, home, thread_id, rollout_id, is_current, size, mtime_ns, scanned, is_complete, turn_state, source, cwd, project, git_branch, git_commit, git_url, model, name, preview, created_at, updated_at, updated_s, learned_s, is_archived, is_root, memory_mode, turns, tokens, skipped, base_id)
SELECT path, home, thread_id, rollout_id, is_current, size, mtime_ns, scanned, is_complete, turn_state, source, cwd, project, git_branch, git_commit, git_url, model, name, preview, created_at, updated_at, updated_s, learned_s, is_archived, is_root, memory_mode, turns, tokens, skipped, base_id FROM threads_before;
DROP TABLE threads_before;

-- Files of other agents that an import has looked at: what tells that one is unchanged, and why one was left out.
CREATE TABLE imports (
  home         TEXT NOT NULL,   -- the home that it was imported into
  path         TEXT NOT NULL,   -- the source's file
  source       TEXT NOT NULL,   -- codex, claude-code, gemini, swe-agent or transcript
  size         BIGINT NOT NULL, -- with mtime_ns: how an unchanged file is recognised
  mtime_ns     BIGINT NOT NULL, -- the other half of that
  thread_id    TEXT,            -- the thread that it became
  ledger       TEXT,            -- the ledger that it was written to
  ledger_size  BIGINT,          -- how long that was (a lost one is made again); of a Codex file, up to where citations were counted
  first_record TEXT,            -- id of its first record: forks and copies of a session share it
  first_answer TEXT,            -- id of the model's first answer: shared by copies whose records were renamed
  reason       TEXT,            -- why it was left out: excluded, deleted, copy, empty, …
  PRIMARY KEY (home, path)
);
