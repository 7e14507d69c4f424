-- name: imports.all
-- Everything that imports into a home have looked at.
SELECT * FROM imports WHERE home = :home

-- name: imports.left_out
-- Files that are referred to in place and were left out: nobody need look at them until they change.
SELECT path, size, mtime_ns FROM imports WHERE home = :home AND source = 'codex' AND reason IS NOT NULL

-- name: imports.put
-- Note what became of a file.
INSERT INTO imports (home, path, source, size, mtime_ns, thread_id, ledger, ledger_size, first_record, first_answer, reason)
VALUES (:home, :path, :source, :size, :mtime_ns, :thread_id, :ledger, :ledger_size, :first_record, :first_answer, :reason)
ON CONFLICT (home, path) DO UPDATE SET source = excluded.source, size = excluded.size, mtime_ns = excluded.mtime_ns,
  thread_id = excluded.thread_id, ledger = excluded.ledger, ledger_size = excluded.ledger_size,
  first_record = excluded.first_record, first_answer = excluded.first_answer, reason = excluded.reason

-- name: imports.forget_left_out
-- Look again at what settings or decisions had left out.
DELETE FROM imports WHERE home = :home AND reason IN ('excluded', 'deleted')

-- name: imports.reasons
-- How many files were left out, by source and reason.
SELECT source, reason, count(*) AS n FROM imports WHERE home = :home AND reason IS NOT NULL
GROUP BY source, reason ORDER BY n DESC, source, reason
