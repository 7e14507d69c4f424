-- name: homes.put
-- A home shares this memory.
INSERT INTO homes (home, host, folder) VALUES (:home, :host, :folder)
ON CONFLICT (home) DO UPDATE SET host = excluded.host, folder = excluded.folder
WHERE homes.host <> excluded.host OR homes.folder <> excluded.folder

-- name: homes.all
-- The homes that share this memory.
SELECT home, host, folder FROM homes ORDER BY home

-- name: homes.of_thread
-- The ledgers of a thread in the homes that share this memory, and where those homes are.
SELECT threads.path, threads.home, homes.host FROM threads JOIN homes ON homes.home = threads.home
WHERE threads.thread_id = :thread_id AND threads.is_current = 1
ORDER BY threads.is_archived, threads.updated_at DESC, threads.home

-- name: shared.generation
-- How often a shared memory changed.
SELECT generation, epoch FROM shared_memories WHERE root = :root

-- name: shared.bump
-- A shared memory changes.
INSERT INTO shared_memories (root, generation, epoch) VALUES (:root, 1, :epoch)
ON CONFLICT (root) DO UPDATE SET generation = shared_memories.generation + 1

-- name: shared.files
-- The published files.
SELECT path, sha256, mtime_ns, is_program, person FROM shared_files ORDER BY path

-- name: shared.put_file
-- Publish a file.
INSERT INTO shared_files (path, sha256, mtime_ns, is_program, person)
VALUES (:path, :sha256, :mtime_ns, :is_program, :person)
ON CONFLICT (path) DO UPDATE SET sha256 = excluded.sha256, mtime_ns = excluded.mtime_ns,
  is_program = excluded.is_program, person = coalesce(excluded.person, shared_files.person)

-- name: shared.drop_file
-- A file is no part of the memory any more.
DELETE FROM shared_files WHERE path = :path

-- name: shared.put_content
-- What a published file holds.
INSERT INTO shared_contents (sha256, data) VALUES (:sha256, :data) ON CONFLICT (sha256) DO NOTHING

-- name: shared.content
-- What a published file holds.
SELECT data FROM shared_contents WHERE sha256 = :sha256

-- name: shared.drop_contents
-- Delete what no published file holds.
DELETE FROM shared_contents WHERE sha256 NOT IN (SELECT sha256 FROM shared_files)

-- name: shared.decisions
-- What people decided, in no order.
SELECT line_id, line FROM shared_decisions

-- name: shared.put_decision
-- Publish a decision.
INSERT INTO shared_decisions (line_id, line) VALUES (:line_id, :line) ON CONFLICT (line_id) DO NOTHING

-- name: threads.set_person
-- Whose a session is, as it was when the session was first seen.
UPDATE threads SET person = :person WHERE home = :home AND path = :path AND person IS NULL

-- name: outputs.set_person
-- Whose session an extraction is of, as its thread says.
UPDATE outputs SET person = (
  SELECT max(threads.person) FROM threads WHERE threads.home = :home AND threads.thread_id = :thread_id)
WHERE thread_id = :thread_id
