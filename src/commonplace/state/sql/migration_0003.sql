-- Several memory roots may share a database: each consolidation lets go only of what it holds itself.
ALTER TABLE outputs ADD COLUMN selected_root TEXT; -- the memory root whose last consolidation it is part of
