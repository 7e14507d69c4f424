-- name: shelves.get
-- How often a shelf changed.
SELECT generation FROM shelves WHERE root = :root AND shelf = :shelf

-- name: shelves.bump
-- A shelf changes.
INSERT INTO shelves (root, shelf, generation) VALUES (:root, :shelf, 1)
ON CONFLICT (root, shelf) DO UPDATE SET generation = shelves.generation + 1

-- name: segments.all
-- The segments of a shelf, with what is known of their passages.
SELECT segment_id, passages, bits, facts FROM segments
WHERE root = :root AND shelf = :shelf AND version = :version ORDER BY segment_id

-- name: segments.sizes
-- How large the segments of a shelf are, and how much of each is gone.
SELECT s.segment_id, s.passages, s.version, (SELECT count(*) FROM indexed i WHERE i.segment_id = s.segment_id) AS live,
  (SELECT count(*) FROM dropped d WHERE d.segment_id = s.segment_id) AS gone
FROM segments s WHERE s.root = :root AND s.shelf = :shelf ORDER BY s.passages, s.segment_id

-- name: segments.put
-- A new segment.
INSERT INTO segments (segment_id, root, shelf, version, passages, bits, facts)
VALUES (:segment_id, :root, :shelf, :version, :passages, :bits, :facts)

-- name: segments.get
-- One segment, to be merged with others.
SELECT segment_id, passages, bits, facts FROM segments WHERE segment_id = :segment_id

-- name: segments.delete
-- A segment is no longer needed.
DELETE FROM segments WHERE segment_id = :segment_id

-- name: segments.delete_postings
-- The postings of a segment that is no longer needed.
DELETE FROM postings WHERE segment_id = :segment_id

-- name: segments.delete_dropped
-- What was gone of a segment that is no longer needed.
DELETE FROM dropped WHERE segment_id = :segment_id

-- name: segments.delete_indexed
-- The documents of a segment that is no longer needed.
DELETE FROM indexed WHERE segment_id = :segment_id

-- name: postings.put
-- The postings of some terms of a segment.
INSERT INTO postings (segment_id, bucket, data) VALUES (:segment_id, :bucket, :data)

-- name: postings.get
-- The postings of some terms of a segment.
SELECT data FROM postings WHERE segment_id = :segment_id AND bucket = :bucket

-- name: postings.between
-- The postings of several shares of a segment's terms, in order.
SELECT bucket, data FROM postings WHERE segment_id = :segment_id AND bucket >= :first AND bucket < :last ORDER BY bucket

-- name: dropped.all
-- The documents of a shelf's segments that are gone.
SELECT d.segment_id, d.place FROM dropped d JOIN segments s ON s.segment_id = d.segment_id
WHERE s.root = :root AND s.shelf = :shelf

-- name: dropped.of
-- The documents of one segment that are gone.
SELECT place FROM dropped WHERE segment_id = :segment_id ORDER BY place

-- name: dropped.put
-- A document is gone, or has newer passages elsewhere.
INSERT INTO dropped (segment_id, place)
SELECT segment_id, place FROM indexed WHERE root = :root AND shelf = :shelf AND document = :document
ON CONFLICT (segment_id, place) DO NOTHING

-- name: indexed.put
-- Where a document's passages are now.
INSERT INTO indexed (root, shelf, document, segment_id, place, size, mtime_ns)
VALUES (:root, :shelf, :document, :segment_id, :place, :size, :mtime_ns)
ON CONFLICT (root, shelf, document) DO UPDATE SET segment_id = excluded.segment_id, place = excluded.place,
  size = excluded.size, mtime_ns = excluded.mtime_ns

-- name: indexed.move
-- A document's passages are in another segment now.
UPDATE indexed SET segment_id = :segment_id, place = :place WHERE segment_id = :old_id AND place = :old_place

-- name: indexed.delete
-- A document is no longer searched.
DELETE FROM indexed WHERE root = :root AND shelf = :shelf AND document = :document

-- name: indexed.all
-- The documents of a shelf, with what tells whether they changed.
SELECT document, size, mtime_ns FROM indexed WHERE root = :root AND shelf = :shelf

-- name: indexed.stale
-- Threads of a home whose file is not searched yet, or changed since.
SELECT t.thread_id, t.path, t.source, t.size, t.mtime_ns, i.size AS old_size
FROM threads t LEFT JOIN indexed i ON i.root = t.home AND i.shelf = 'sessions' AND i.document = t.thread_id
WHERE t.home = :root AND t.is_current = 1 AND t.is_root = 1
  AND (i.document IS NULL OR i.size <> t.size OR i.mtime_ns <> t.mtime_ns)
ORDER BY t.path

-- name: indexed.gone
-- Threads that are searched and no longer listed.
SELECT i.document FROM indexed i
LEFT JOIN threads t ON t.home = i.root AND t.thread_id = i.document AND t.is_current = 1 AND t.is_root = 1
WHERE i.root = :root AND i.shelf = 'sessions' AND t.thread_id IS NULL

-- name: indexed.chosen
-- The threads of a home, or of all that share a memory, that a search may show.
-- filter own: AND home = :root
-- filter shared: AND home IN (SELECT home FROM homes)
-- filter project: AND project = :project
-- filter learned: AND memory_mode = 'enabled'
SELECT thread_id FROM threads WHERE is_current = 1 {filters}
