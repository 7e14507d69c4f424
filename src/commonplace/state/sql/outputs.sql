-- name: outputs.get
-- The extraction of a thread.
SELECT * FROM outputs WHERE thread_id = :thread_id

-- name: outputs.put
-- Store an extraction, unless a newer one is there; usage, pins and selection stay.
INSERT INTO outputs (thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, lessons, generated_at, is_empty, fresh_at)
VALUES (:thread_id, :source_updated_at, :raw_memory, :rollout_summary, :rollout_slug, :lessons, :now, :is_empty, :source_updated_at)
ON CONFLICT (thread_id) DO UPDATE SET source_updated_at = excluded.source_updated_at, raw_memory = excluded.raw_memory,
  rollout_summary = excluded.rollout_summary, rollout_slug = excluded.rollout_slug, lessons = excluded.lessons, generated_at = excluded.generated_at,
  is_empty = excluded.is_empty,
  fresh_at = CASE WHEN outputs.fresh_at > excluded.fresh_at THEN outputs.fresh_at ELSE excluded.fresh_at END
WHERE excluded.source_updated_at >= outputs.source_updated_at

-- name: outputs.delete
-- Forget the extraction of a thread.
DELETE FROM outputs WHERE thread_id = :thread_id

-- name: outputs.clear
-- Forget every extraction.
DELETE FROM outputs

-- name: outputs.select
-- The extractions to consolidate, of threads that memory may use, the most useful first; of a thread with several files,
-- the one that stands for it comes first.
-- filter own: AND threads.home = :home
-- filter shared: AND threads.home IN (SELECT home FROM homes)
SELECT outputs.thread_id, outputs.source_updated_at, outputs.raw_memory, outputs.rollout_summary, outputs.rollout_slug,
  outputs.lessons, outputs.fresh_at, outputs.is_pinned, outputs.generated_at, outputs.is_selected, outputs.selected_source_updated_at,
  outputs.person, threads.path, threads.cwd, threads.git_branch, threads.project
FROM outputs JOIN threads ON threads.thread_id = outputs.thread_id
WHERE outputs.is_empty = 0 AND threads.is_current = 1 AND threads.memory_mode = 'enabled' {filters}
ORDER BY outputs.cited DESC, outputs.retrieved DESC, outputs.fresh_at DESC, outputs.source_updated_at DESC,
  outputs.thread_id DESC, threads.is_archived, threads.updated_at DESC, threads.path, threads.home

-- name: outputs.matching
-- The lessons, as JSON, of extractions that hold a text, of threads that memory may use, the newest first. The cross join
-- makes SQLite begin with the few outputs, not with all threads of the home.
-- filter own: AND threads.home = :home
-- filter shared: AND threads.home IN (SELECT home FROM homes)
SELECT outputs.thread_id, outputs.source_updated_at, outputs.lessons, threads.project, threads.cwd
FROM outputs CROSS JOIN threads
WHERE outputs.lessons LIKE :pattern AND threads.thread_id = outputs.thread_id AND threads.is_current = 1 AND threads.memory_mode = 'enabled' {filters}
ORDER BY outputs.source_updated_at DESC, outputs.thread_id DESC, threads.is_archived, threads.updated_at DESC,
  threads.path, threads.home

-- name: outputs.deselect
-- Nothing is part of the last consolidation of a root any more.
UPDATE outputs SET is_selected = 0, selected_source_updated_at = NULL, selected_root = NULL
WHERE is_selected = 1 AND coalesce(selected_root, :root) = :root

-- name: outputs.mark_selected
-- Part of the last consolidation of a root, exactly as it was then.
UPDATE outputs SET is_selected = 1, selected_source_updated_at = :source_updated_at, selected_root = :root
WHERE thread_id = :thread_id AND source_updated_at = :source_updated_at

-- name: outputs.pin
-- Keep an extraction from ageing, or no longer.
UPDATE outputs SET is_pinned = :is_pinned WHERE thread_id = :thread_id

-- name: outputs.ids
-- The threads that there is an extraction of.
SELECT thread_id FROM outputs

-- name: outputs.all
-- What every thread taught.
SELECT thread_id, raw_memory, rollout_summary, rollout_slug, lessons FROM outputs ORDER BY thread_id

-- name: outputs.count
-- How many extractions there are, and how many the last consolidation used.
SELECT count(*) AS outputs, CAST(coalesce(sum(is_selected), 0) AS BIGINT) AS selected FROM outputs
