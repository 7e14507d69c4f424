-- What a session taught as values (JSON), which its texts are rendered from. NULL: an older version or somebody else
-- wrote the texts, and they are parsed.
ALTER TABLE outputs ADD COLUMN lessons TEXT;
