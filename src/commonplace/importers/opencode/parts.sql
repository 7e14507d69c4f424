-- The parts of a message.
SELECT id, data FROM part WHERE message_id = :id ORDER BY id
