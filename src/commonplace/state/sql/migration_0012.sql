-- Whose a session is.
ALTER TABLE threads ADD COLUMN person TEXT;
ALTER TABLE outputs ADD COLUMN person TEXT;

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
