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
  PRIMARY KEY (root, entry_id)
);
CREATE INDEX entries_in_order ON entries (root, place);
CREATE INDEX entries_by_scope ON entries (root, scope, place);

-- Which state of each memory the entries are mirrored from.
CREATE TABLE memories (
  root        TEXT PRIMARY KEY, -- the memory: its home
  fingerprint TEXT NOT NULL     -- of what it was made from
);
