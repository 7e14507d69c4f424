-- name: threads.page
-- One page of a home's threads, newest first.
-- filter after: AND (updated_at, thread_id) < (:before, :before_id)
-- filter cwd: AND cwd = :cwd
-- filter source: AND source = :source
-- filter root: AND is_root = 1
-- filter since: AND updated_s >= :since
SELECT * FROM threads
WHERE home = :home AND is_archived = :archived AND is_current = 1
  {filters}
ORDER BY updated_at DESC, thread_id DESC
LIMIT :limit

-- name: threads.page_oldest
-- One page of a home's threads, oldest first.
-- filter after: AND (updated_at, thread_id) > (:before, :before_id)
-- filter cwd: AND cwd = :cwd
-- filter source: AND source = :source
-- filter root: AND is_root = 1
-- filter since: AND updated_s >= :since
SELECT * FROM threads
WHERE home = :home AND is_archived = :archived AND is_current = 1
  {filters}
ORDER BY updated_at, thread_id
LIMIT :limit

-- name: threads.by_id
-- The current file of a thread in a home, archived or not.
SELECT * FROM threads WHERE home = :home AND thread_id = :thread_id AND is_current = 1
ORDER BY is_archived, updated_at DESC

-- name: threads.by_prefix
-- Threads of a home whose id begins with a text (bounds, so that the index serves it).
SELECT * FROM threads
WHERE home = :home AND thread_id >= :low AND thread_id < :high AND is_current = 1
ORDER BY thread_id LIMIT 10

-- name: threads.by_name
-- Threads of a home that carry a name, newest first.
SELECT * FROM threads WHERE home = :home AND name = :name AND is_current = 1 ORDER BY updated_at DESC LIMIT 10

-- name: threads.by_path
-- The row of one file in a home's listing.
SELECT * FROM threads WHERE home = :home AND path = :path

-- name: threads.stamps
-- What tells whether files changed since they were indexed.
SELECT path, thread_id, size, mtime_ns, is_complete FROM threads WHERE home = :home

-- name: threads.put
-- Insert or renew the row of one file.
INSERT INTO threads (path, home, thread_id, rollout_id, size, mtime_ns, scanned, is_complete, turn_state, source, cwd, project,
  git_branch, git_commit, git_url, model, name, title, preview, created_at, updated_at, updated_s, is_archived, is_root, memory_mode, turns,
  tokens, skipped, base_id, parent_id)
VALUES (:path, :home, :thread_id, :rollout_id, :size, :mtime_ns, :scanned, :is_complete, :turn_state, :source, :cwd, :project,
  :git_branch, :git_commit, :git_url, :model, :name, :title, :preview, :created_at, :updated_at, :updated_s, :is_archived, :is_root, :memory_mode,
  :turns, :tokens, :skipped, :base_id, :parent_id)
ON CONFLICT (home, path) DO UPDATE SET thread_id = excluded.thread_id, rollout_id = excluded.rollout_id, size = excluded.size,
  mtime_ns = excluded.mtime_ns, scanned = excluded.scanned, is_complete = excluded.is_complete, turn_state = excluded.turn_state,
  source = excluded.source, cwd = excluded.cwd, project =
    CASE WHEN threads.cwd = excluded.cwd AND coalesce(threads.git_url, '') = coalesce(excluded.git_url, '')
    THEN threads.project ELSE excluded.project END, git_branch = excluded.git_branch,
  git_commit = excluded.git_commit, git_url = excluded.git_url, model = excluded.model, name = excluded.name, title = excluded.title,
  preview = excluded.preview, created_at = excluded.created_at, updated_at = excluded.updated_at, updated_s = excluded.updated_s,
  is_archived = excluded.is_archived, is_root = excluded.is_root, memory_mode =
    CASE WHEN threads.memory_mode = 'polluted' THEN 'polluted' ELSE excluded.memory_mode END, turns = excluded.turns,
  tokens = excluded.tokens, skipped = excluded.skipped, base_id = excluded.base_id, parent_id = excluded.parent_id

-- name: threads.mark_replaced
-- Of a thread with several files (it was reverted, or a file was copied), one stands for it: the newest.
UPDATE threads SET is_current = CASE WHEN path = (
    SELECT other.path FROM threads AS other
    WHERE other.home = threads.home AND other.thread_id = threads.thread_id
    ORDER BY other.rollout_id <> other.thread_id DESC, other.rollout_id DESC, other.is_archived,
      other.updated_at DESC, other.path LIMIT 1
  ) THEN 1 ELSE 0 END
WHERE home = :home AND thread_id IN (
  SELECT thread_id FROM threads WHERE home = :home GROUP BY thread_id HAVING count(*) > 1
)

-- name: threads.drop
-- Forget a file that is gone from a home's listing.
DELETE FROM threads WHERE home = :home AND path = :path

-- name: threads.drop_home
-- Forget every file of a home, before its index is built again.
DELETE FROM threads WHERE home = :home

-- name: threads.rename
-- Mirror a name.
UPDATE threads SET name = :name WHERE home = :home AND thread_id = :thread_id

-- name: threads.unname
-- Take away every mirrored name of a home, before the current ones are mirrored.
UPDATE threads SET name = NULL WHERE home = :home AND name IS NOT NULL

-- name: threads.names
-- The names that are mirrored for a home.
SELECT DISTINCT thread_id, name FROM threads WHERE home = :home AND name IS NOT NULL

-- name: threads.count
-- How many threads and files a home has.
SELECT count(DISTINCT thread_id) AS threads, count(*) AS files,
  CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes
FROM threads WHERE home = :home

-- name: threads.forks_of
-- Which threads continue a rollout by reference, in any home.
SELECT DISTINCT thread_id FROM threads WHERE base_id = :rollout_id AND thread_id <> :thread_id ORDER BY thread_id

-- name: threads.restore_learned
-- Know again what was extracted, after rows were built anew.
UPDATE threads SET learned_s = coalesce(
  (SELECT max(mark) FROM (
    SELECT source_updated_at AS mark FROM outputs WHERE outputs.thread_id = threads.thread_id
    UNION ALL
    SELECT last_success_watermark FROM jobs WHERE jobs.kind = 'memory_stage1' AND jobs.job_key = threads.thread_id
  ) AS marks), -1)
WHERE home = :home AND learned_s = -1

-- name: threads.restore_learned_of
-- The same for one file.
UPDATE threads SET learned_s = coalesce(
  (SELECT max(mark) FROM (
    SELECT source_updated_at AS mark FROM outputs WHERE outputs.thread_id = threads.thread_id
    UNION ALL
    SELECT last_success_watermark FROM jobs WHERE jobs.kind = 'memory_stage1' AND jobs.job_key = threads.thread_id
  ) AS marks), -1)
WHERE home = :home AND path = :path AND learned_s = -1

-- name: threads.learned
-- A thread was extracted up to a watermark.
UPDATE threads SET learned_s = :watermark WHERE thread_id = :thread_id AND learned_s < :watermark

-- name: threads.forget_learned
-- Nothing counts as extracted any more.
UPDATE threads SET learned_s = -1

-- name: threads.set_mode
-- Change what memory may do with a thread.
UPDATE threads SET memory_mode = :memory_mode WHERE thread_id = :thread_id AND memory_mode <> :memory_mode

-- name: threads.mirror_mode
-- Mirror what a person decided, unless the thread was polluted since.
UPDATE threads SET memory_mode = :memory_mode
WHERE thread_id = :thread_id AND memory_mode <> :memory_mode AND memory_mode <> 'polluted'

-- name: threads.count_waiting
-- How many threads of a home memory has not read as they are now.
SELECT count(*) AS n FROM threads
WHERE home = :home AND updated_s > learned_s AND is_current = 1 AND is_archived = 0 AND is_root = 1
  AND memory_mode = 'enabled'

-- name: threads.modes
-- How many threads of a home memory may learn from, and not.
SELECT memory_mode, count(*) AS n FROM threads WHERE home = :home AND is_current = 1 GROUP BY memory_mode

-- name: threads.places
-- Where the threads of a home ran, the repository that each noted, and when that was.
SELECT cwd, coalesce(git_url, '') AS git_url, min(updated_s) AS first_s, max(updated_s) AS last_s
FROM threads WHERE home = :home GROUP BY cwd, coalesce(git_url, '')

-- name: threads.set_project
-- Say which project the threads belong to that ran in a folder and noted a repository.
UPDATE threads SET project = :project
WHERE home = :home AND cwd = :cwd AND coalesce(git_url, '') = :git_url AND project <> :project

-- name: threads.folders
-- The folder of each thread, what it noted of its repository, and the evidence for its project.
-- filter own: AND threads.home = :home
-- filter shared: AND threads.home IN (SELECT home FROM homes)
SELECT threads.thread_id, threads.cwd, coalesce(threads.git_url, '') AS git_url, threads.git_branch, threads.git_commit,
  threads.project, threads.home, folder_evidence.evidence
FROM threads LEFT JOIN folder_evidence ON folder_evidence.thread_id = threads.thread_id
WHERE threads.is_current = 1 {filters} ORDER BY threads.thread_id

-- name: blobs.put
-- Note that a file refers to a blob.
INSERT INTO blob_refs (sha256, path) VALUES (:sha256, :path) ON CONFLICT DO NOTHING

-- name: blobs.drop
-- Forget what a file refers to, once no listing has it.
DELETE FROM blob_refs WHERE path = :path AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.path = :path)

-- name: blobs.drop_home
-- Forget the references of all files that are no longer in the index.
DELETE FROM blob_refs WHERE path NOT IN (SELECT path FROM threads)

-- name: blobs.referenced
-- Every blob that some file refers to, or that some file of one home does.
-- filter home: WHERE path IN (SELECT path FROM threads WHERE home = :home)
SELECT DISTINCT sha256 FROM blob_refs {filters}

-- name: threads.texts
-- What listings show of the words of each file of a home.
SELECT path, title, preview FROM threads WHERE home = :home

-- name: threads.retell
-- Show other words of a file.
UPDATE threads SET title = :title, preview = :preview WHERE home = :home AND path = :path

-- name: threads.current
-- What tells of each thread of a home whether memory learns from it.
SELECT thread_id, path, source, cwd, project, updated_s, learned_s, is_archived, is_root, memory_mode, size
FROM threads WHERE home = :home AND is_current = 1

-- name: threads.project_folders
-- Where the threads of each project of a home ran.
SELECT DISTINCT project, cwd FROM threads WHERE home = :home AND is_current = 1

-- name: threads.standing
-- The threads of a home that are alike in all that decides whether they are learned from, and how many there are.
SELECT source, cwd, project, is_archived, is_root, memory_mode,
  CASE WHEN updated_s <= learned_s THEN 1 ELSE 0 END AS is_learned,
  CASE WHEN updated_s > :newest THEN 1 ELSE 0 END AS is_recent, count(*) AS n
FROM threads WHERE home = :home AND is_current = 1
GROUP BY source, cwd, project, is_archived, is_root, memory_mode,
  CASE WHEN updated_s <= learned_s THEN 1 ELSE 0 END, CASE WHEN updated_s > :newest THEN 1 ELSE 0 END

-- name: threads.searched
-- The current file of every thread that search looks into, newest first.
SELECT thread_id, path, project, updated_s FROM threads
WHERE home = :home AND is_current = 1 AND is_root = 1 ORDER BY updated_at DESC, thread_id DESC

-- name: threads.recent_folders
-- The folders of a home's newest threads, the newest first.
SELECT cwd, max(updated_at) AS newest FROM threads
WHERE home = :home AND is_current = 1 AND is_root = 1 AND cwd <> '' GROUP BY cwd ORDER BY newest DESC, cwd LIMIT :limit

-- name: threads.in_folder
-- The projects that the threads in a folder, by either of two names, were noted for, the newest first.
SELECT project FROM threads WHERE home = :home AND is_current = 1 AND cwd IN (:place, :resolved)
ORDER BY updated_s DESC LIMIT 1

-- name: threads.children
-- The sub-agents that a thread started, oldest first.
SELECT thread_id FROM threads
WHERE home = :home AND parent_id = :parent_id AND is_current = 1 ORDER BY thread_id
