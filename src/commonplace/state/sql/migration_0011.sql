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

-- Whose sub-agent a thread is, so that listings need not read files. Files of sub-agents are read anew for it.
ALTER TABLE threads ADD COLUMN parent_id TEXT;
CREATE INDEX threads_by_parent ON threads (home, parent_id) WHERE parent_id IS NOT NULL;
UPDATE threads SET size = 0, mtime_ns = 0, is_complete = 0 WHERE is_root = 0;
