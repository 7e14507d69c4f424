-- Every session of the database.
SELECT id FROM session ORDER BY id
