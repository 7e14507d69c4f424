-- name: entries.clear
-- Forget what a memory holds, before it is told anew.
DELETE FROM entries WHERE root = :root

-- name: entries.put
-- One entry of a memory.
INSERT INTO entries (root, entry_id, place, scope, kind, text, support, sources, first_seen_s, last_seen_s, is_pinned, is_shown,
  is_candidate, confidence)
VALUES (:root, :entry_id, :place, :scope, :kind, :text, :support, :sources, :first_seen_s, :last_seen_s, :is_pinned, :is_shown,
  :is_candidate, :confidence)

-- name: entries.page
-- Some entries of a memory, or some candidates, with their usage, the most useful first.
-- filter scope: AND e.scope = :scope
-- filter kind: AND e.kind = :kind
SELECT e.*, coalesce(u.retrieved, 0) AS retrieved, coalesce(u.injected, 0) AS injected, coalesce(u.cited, 0) AS cited
FROM entries e LEFT JOIN entry_usage u ON u.entry_id = e.entry_id
WHERE e.root = :root AND e.is_candidate = :candidates AND e.place >= :after {filters}
ORDER BY e.place LIMIT :limit

-- name: entries.get
-- One entry of a memory with its usage.
SELECT e.*, coalesce(u.retrieved, 0) AS retrieved, coalesce(u.injected, 0) AS injected, coalesce(u.cited, 0) AS cited
FROM entries e LEFT JOIN entry_usage u ON u.entry_id = e.entry_id
WHERE e.root = :root AND e.entry_id = :entry_id

-- name: entries.scopes
-- How many entries a memory has for each scope.
SELECT scope, count(*) AS n FROM entries WHERE root = :root AND is_candidate = 0 GROUP BY scope ORDER BY scope

-- name: entries.hidden
-- Entries that a memory holds and its file had no room for.
SELECT entry_id FROM entries WHERE root = :root AND is_shown = 0 AND is_candidate = 0

-- name: entries.pin
-- Keep an entry, or no longer.
UPDATE entries SET is_pinned = :is_pinned WHERE root = :root AND entry_id = :entry_id

-- name: memories.get
-- Which state of a memory its entries are mirrored from.
SELECT fingerprint FROM memories WHERE root = :root

-- name: memories.put
-- Say which state of a memory its entries are mirrored from.
INSERT INTO memories (root, fingerprint) VALUES (:root, :fingerprint)
ON CONFLICT (root) DO UPDATE SET fingerprint = excluded.fingerprint

-- name: memories.forget
-- A memory is gone.
DELETE FROM memories WHERE root = :root

-- name: entries.newest
-- The entries that were learned last, with how often each was used.
SELECT entries.*, coalesce(entry_usage.retrieved, 0) AS retrieved, coalesce(entry_usage.injected, 0) AS injected,
  coalesce(entry_usage.cited, 0) AS cited
FROM entries LEFT JOIN entry_usage ON entry_usage.entry_id = entries.entry_id
WHERE root = :root AND is_candidate = 0 ORDER BY first_seen_s DESC, place LIMIT :limit

-- name: entries.undecided
-- Candidates, and entries that one session taught and that are not sure enough to be told.
SELECT entry_id, is_candidate FROM entries
WHERE root = :root AND (is_candidate = 1 OR (is_pinned = 0 AND support <= 1 AND confidence < :told))

-- name: entries.count
-- How many entries and candidates there are.
SELECT is_candidate, count(*) AS n FROM entries WHERE root = :root GROUP BY is_candidate
