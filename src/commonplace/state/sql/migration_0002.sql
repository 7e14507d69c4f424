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
  selected_root     TEXT                       -- the memory root whose last consolidation it is part of
);
CREATE INDEX outputs_ranked ON outputs
  (is_empty, cited DESC, retrieved DESC, fresh_at DESC, source_updated_at DESC, thread_id DESC);
CREATE INDEX outputs_stale ON outputs (fresh_at, source_updated_at, thread_id) WHERE is_selected = 0 AND is_pinned = 0;
CREATE INDEX outputs_selected ON outputs (thread_id) WHERE is_selected = 1;

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
  PRIMARY KEY (day, kind)
);
