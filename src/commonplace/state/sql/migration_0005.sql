-- What is searched, as postings in segments that never change: new documents make a new segment, gone ones are passed over.
CREATE TABLE segments (
  segment_id TEXT PRIMARY KEY,       -- a random name
  root       TEXT NOT NULL,          -- whose: a home
  shelf      TEXT NOT NULL,          -- what is in it: sessions or memory
  version    BIGINT NOT NULL,        -- of the rules that texts were cut into terms by; others are made again
  passages   BIGINT NOT NULL,        -- how many there are
  bits       BIGINT NOT NULL,        -- how many top bits of a term's key name its bucket
  facts      BYTEA NOT NULL          -- what is known of its passages and documents, packed
);
CREATE INDEX segments_of ON segments (root, shelf);
CREATE TABLE postings (
  segment_id TEXT NOT NULL,          -- the segment
  bucket     BIGINT NOT NULL,        -- which share of its terms
  data       BYTEA NOT NULL,         -- where each of them occurs, packed
  PRIMARY KEY (segment_id, bucket)
);

-- Which documents are searched, and in which state: what tells that one is new, changed or gone.
CREATE TABLE indexed (
  root       TEXT NOT NULL,          -- whose
  shelf      TEXT NOT NULL,          -- sessions or memory
  document   TEXT NOT NULL,          -- a thread, a summary, an entry
  segment_id TEXT NOT NULL,          -- where its passages are
  place      BIGINT NOT NULL,        -- which of that segment's documents it is
  size       BIGINT NOT NULL,        -- of a session: its file's size; with mtime_ns, how an unchanged one is recognised
  mtime_ns   BIGINT NOT NULL,        -- of a session: the other half of that; of others: a hash of the text
  PRIMARY KEY (root, shelf, document)
);
CREATE INDEX indexed_in ON indexed (segment_id, place);

-- Documents of segments that are gone, or have newer passages elsewhere.
CREATE TABLE dropped (
  segment_id TEXT NOT NULL,          -- the segment
  place      BIGINT NOT NULL,        -- which of its documents
  PRIMARY KEY (segment_id, place)
);

-- How often a shelf changed: what tells that an opened one is still good.
CREATE TABLE shelves (
  root       TEXT NOT NULL,          -- whose
  shelf      TEXT NOT NULL,          -- sessions or memory
  generation BIGINT NOT NULL,        -- counts up
  PRIMARY KEY (root, shelf)
);
