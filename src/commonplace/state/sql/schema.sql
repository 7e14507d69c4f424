-- The whole schema as it is now. A new database is made by this file, an older one is changed by the migrations; a test
-- proves that both come to the same.

-- The index of session files: one row per file and listing, rebuilt from the files alone.
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
  parent_id      TEXT,                      -- of a sub-agent: the thread that started it
  person         TEXT,                      -- whose session it is, in a shared memory, as JSON (`projects.people`)
  PRIMARY KEY (home, path)
);
CREATE INDEX threads_by_time ON threads (home, is_archived, updated_at DESC, thread_id DESC);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_in_home ON threads (home, thread_id, is_archived, updated_at DESC, path);
CREATE INDEX threads_by_name ON threads (name) WHERE name IS NOT NULL;
CREATE INDEX threads_by_base ON threads (base_id) WHERE base_id IS NOT NULL;
CREATE INDEX threads_by_parent ON threads (home, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX threads_to_learn ON threads (home, updated_s DESC, thread_id DESC)
  WHERE updated_s > learned_s AND is_current = 1 AND is_archived = 0 AND is_root = 1 AND memory_mode = 'enabled';

-- Which file refers to which spilled payload: what tells the unreferenced ones.
CREATE TABLE blob_refs (
  sha256 TEXT NOT NULL, -- the blob
  path   TEXT NOT NULL, -- the file that refers to it
  PRIMARY KEY (path, sha256)
);

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

-- Work that processes share: who does what until when.
CREATE TABLE jobs (
  kind            TEXT NOT NULL,    -- memory_stage1, or memory_consolidate_global
  job_key         TEXT NOT NULL,    -- the thread, or the memory root
  status          TEXT NOT NULL,    -- pending, running, done or error
  worker_id       TEXT,             -- who works on it, for people to read
  host            TEXT,             -- with pid and process_start: whether that process still lives,
  pid             BIGINT,           -- which only its own host can tell
  process_start   TEXT,             -- pids are used again; the time a process began is not
  ownership_token TEXT,             -- fresh for every claim; finishing and heartbeats must show it
  started_at      BIGINT,           -- epoch seconds, like all times here
  finished_at     BIGINT,           -- when it last ended, well or not
  lease_until     BIGINT,           -- the claim holds while this is greater than now
  retry_at        BIGINT,           -- not before this, for background starts
  retry_remaining BIGINT NOT NULL,  -- failures left at this watermark
  last_error      TEXT,             -- why it last failed
  input_watermark BIGINT,           -- what the claim or the request is about
  last_success_watermark BIGINT,    -- what was finished; never goes back
  failures        BIGINT NOT NULL DEFAULT 0, -- since it last succeeded, whatever was asked for meanwhile
  PRIMARY KEY (kind, job_key)
);
CREATE INDEX jobs_running ON jobs (kind, lease_until) WHERE status = 'running';
CREATE INDEX jobs_failed ON jobs (kind, finished_at) WHERE status = 'error';

-- What one session taught: the extraction of a thread.
CREATE TABLE outputs (
  thread_id         TEXT PRIMARY KEY,          -- the session
  source_updated_at BIGINT NOT NULL,           -- watermark of the session that it was made from
  raw_memory        TEXT NOT NULL,             -- stage-1 markdown
  rollout_summary   TEXT NOT NULL,             -- stage-1 markdown
  rollout_slug      TEXT,                      -- a name for the summary's file, as the extractor gave it
  generated_at      BIGINT NOT NULL,           -- when it was stored
  is_empty          BIGINT NOT NULL,           -- 1 when there is nothing in it to consolidate
  is_pinned         BIGINT NOT NULL DEFAULT 0, -- a person asked to keep it: it never ages out
  retrieved         BIGINT NOT NULL DEFAULT 0, -- times a search or a tool gave it out
  last_retrieved    BIGINT,                    -- when, last
  injected          BIGINT NOT NULL DEFAULT 0, -- times a prompt carried it
  last_injected     BIGINT,                    -- when, last; not a sign of use
  cited             BIGINT NOT NULL DEFAULT 0, -- times an answer named it
  last_cited        BIGINT,                    -- when, last
  fresh_at          BIGINT NOT NULL,           -- max(last cited, last retrieved, source updated): what ageing looks at
  is_selected       BIGINT NOT NULL DEFAULT 0, -- part of the last successful consolidation
  selected_source_updated_at BIGINT,           -- the snapshot that was consolidated
  selected_root     TEXT,                      -- the memory root whose last consolidation it is part of
  lessons           TEXT,                      -- what the texts are rendered from, as JSON; NULL: somebody else wrote them
  person            TEXT                       -- whose session it was, in a shared memory, as JSON (`projects.people`)
);
CREATE INDEX outputs_selected ON outputs (thread_id) WHERE is_selected = 1;

-- What each session tells about the project of its folder, so that projects are decided from all sessions together.
CREATE TABLE folder_evidence (
  thread_id TEXT PRIMARY KEY, -- the session
  evidence  TEXT NOT NULL     -- JSON (`projects.evidence`)
);

-- The projects of a home, as they were last decided.
CREATE TABLE projects (
  home    TEXT NOT NULL, -- whose
  project TEXT NOT NULL, -- its identity: an address, a first commit or a folder
  why     TEXT NOT NULL, -- JSON: sentences that say why its folders are one project
  PRIMARY KEY (home, project)
);

-- The folders and addresses by which each project is known.
CREATE TABLE project_names (
  home    TEXT NOT NULL, -- whose
  name    TEXT NOT NULL, -- a folder, or the identity of a repository
  noted   TEXT NOT NULL, -- of a folder: the identity that sessions noted there; empty if none, and for an address
  project TEXT NOT NULL, -- the project that it means
  PRIMARY KEY (home, name, noted)
);

-- What the memory holds, mirrored from the last consolidation, so that it can be listed without reading all files again.
CREATE TABLE entries (
  root         TEXT NOT NULL,             -- the memory that it is part of: its home
  entry_id     TEXT NOT NULL,             -- stable while its first words stay
  place        BIGINT NOT NULL,           -- its rank: the most useful first
  scope        TEXT NOT NULL,             -- global, or the project's identity
  kind         TEXT NOT NULL,             -- preference, rule, fix, verify, environment, decision, procedure or failure
  text         TEXT NOT NULL,             -- as MEMORY.md says it
  support      BIGINT NOT NULL,           -- how many sessions and notes taught it
  sources      TEXT NOT NULL,             -- JSON: the words it rests on, and where they stand
  first_seen_s BIGINT NOT NULL,           -- when it was first taught
  last_seen_s  BIGINT NOT NULL,           -- when it was last taught
  is_pinned    BIGINT NOT NULL DEFAULT 0, -- a person asked to keep it
  is_shown     BIGINT NOT NULL DEFAULT 1, -- 0 when it did not fit into MEMORY.md
  is_candidate BIGINT NOT NULL DEFAULT 0, -- 1 while it waits for another session or for a person
  confidence   DOUBLE PRECISION NOT NULL DEFAULT 1, -- how likely it lasts
  PRIMARY KEY (root, entry_id)
);
CREATE INDEX entries_in_order ON entries (root, place);
CREATE INDEX entries_by_scope ON entries (root, scope, place);

-- Which state of each memory the entries are mirrored from.
CREATE TABLE memories (
  root        TEXT PRIMARY KEY, -- the memory: its home
  fingerprint TEXT NOT NULL     -- of what it was made from
);

-- How often each entry of the memory was of use.
CREATE TABLE entry_usage (
  entry_id       TEXT PRIMARY KEY,          -- the entry's stable id
  retrieved      BIGINT NOT NULL DEFAULT 0, -- given out by a search or a tool
  last_retrieved BIGINT,                    -- when, last
  injected       BIGINT NOT NULL DEFAULT 0, -- carried by a prompt
  last_injected  BIGINT,                    -- when, last
  cited          BIGINT NOT NULL DEFAULT 0, -- named by an answer
  last_cited     BIGINT                     -- when, last
);

-- What models cost, per day and kind of work: what limits are checked against.
CREATE TABLE budget (
  day      TEXT NOT NULL,             -- UTC, YYYY-MM-DD
  kind     TEXT NOT NULL,             -- the job kind that spent it
  requests BIGINT NOT NULL DEFAULT 0, -- calls of a model
  tokens   BIGINT NOT NULL DEFAULT 0, -- in and out
  millis   BIGINT NOT NULL DEFAULT 0, -- of runs, from their first request to their last answer
  PRIMARY KEY (day, kind)
);

-- When learning last began in the background of a session, so that it does so once in a while for all processes.
CREATE TABLE starts (
  root      TEXT PRIMARY KEY, -- the home
  started_s BIGINT NOT NULL   -- epoch seconds
);

-- What is searched, as postings in segments that never change: new documents make a new segment, gone ones are passed over.
CREATE TABLE segments (
  segment_id TEXT PRIMARY KEY,       -- a random name
  root       TEXT NOT NULL,          -- whose: a home
  shelf      TEXT NOT NULL,          -- what is in it: sessions or memory
  version    BIGINT NOT NULL,        -- of the rules that texts were cut into terms by; others are made again
  passages   BIGINT NOT NULL,        -- how many there are
  bits       BIGINT NOT NULL,        -- how many top bits of a term's key name its bucket
  facts      BYTEA NOT NULL          -- what is known of its passages and documents, packed
);
CREATE INDEX segments_of ON segments (root, shelf);
CREATE TABLE postings (
  segment_id TEXT NOT NULL,          -- the segment
  bucket     BIGINT NOT NULL,        -- which share of its terms
  data       BYTEA NOT NULL,         -- where each of them occurs, packed
  PRIMARY KEY (segment_id, bucket)
);

-- Which documents are searched, and in which state: what tells that one is new, changed or gone.
CREATE TABLE indexed (
  root       TEXT NOT NULL,          -- whose
  shelf      TEXT NOT NULL,          -- sessions or memory
  document   TEXT NOT NULL,          -- a thread, a summary, an entry
  segment_id TEXT NOT NULL,          -- where its passages are
  place      BIGINT NOT NULL,        -- which of that segment's documents it is
  size       BIGINT NOT NULL,        -- of a session: its file's size; with mtime_ns, how an unchanged one is recognised
  mtime_ns   BIGINT NOT NULL,        -- of a session: the other half of that; of others: a hash of the text
  PRIMARY KEY (root, shelf, document)
);
CREATE INDEX indexed_in ON indexed (segment_id, place);

-- Documents of segments that are gone, or have newer passages elsewhere.
CREATE TABLE dropped (
  segment_id TEXT NOT NULL,          -- the segment
  place      BIGINT NOT NULL,        -- which of its documents
  PRIMARY KEY (segment_id, place)
);

-- How often a shelf changed: what tells that an opened one is still good.
CREATE TABLE shelves (
  root       TEXT NOT NULL,          -- whose
  shelf      TEXT NOT NULL,          -- sessions or memory
  generation BIGINT NOT NULL,        -- counts up
  PRIMARY KEY (root, shelf)
);

-- Which thread started which sub-agent, and whether that was closed: what a session's tree is found by when it is resumed.
CREATE TABLE spawn_edges (
  home      TEXT NOT NULL,   -- whose
  child_id  TEXT NOT NULL,   -- the sub-agent's thread
  parent_id TEXT NOT NULL,   -- the thread that started it
  is_open   BIGINT NOT NULL, -- 0 once the sub-agent was closed for good
  started_s BIGINT NOT NULL, -- epoch seconds; a sub-agent that is opened again keeps the first
  PRIMARY KEY (home, child_id)
);
CREATE INDEX spawn_edges_of ON spawn_edges (home, parent_id);

-- The homes that share this memory, and where they are.
CREATE TABLE homes (
  home   TEXT PRIMARY KEY, -- the home's id
  host   TEXT NOT NULL,    -- the host that used it last
  folder TEXT NOT NULL     -- its path there
);

-- How often the files and decisions of a shared memory changed: what tells a host that it has them all.
CREATE TABLE shared_memories (
  root       TEXT PRIMARY KEY, -- the memory
  generation BIGINT NOT NULL,  -- counts up
  epoch      TEXT NOT NULL     -- random: a memory that was removed and made again has another one
);

-- The files of a shared memory, as they were last published.
CREATE TABLE shared_files (
  path       TEXT PRIMARY KEY, -- below the home
  sha256     TEXT NOT NULL,    -- of what it holds
  mtime_ns   BIGINT NOT NULL,  -- its time, which is the same on every host
  is_program BIGINT NOT NULL,  -- 1 if it can be run
  person     TEXT              -- of a note: who wrote it, as JSON (`projects.people`)
);

-- What the published files hold.
CREATE TABLE shared_contents (
  sha256 TEXT PRIMARY KEY, -- of the content
  data   BYTEA NOT NULL    -- the content
);

-- What people decided about a shared memory on any host: lines of decisions.jsonl.
CREATE TABLE shared_decisions (
  line_id TEXT PRIMARY KEY, -- a hash of the line
  line    TEXT NOT NULL     -- JSON
);
