-- The messages of a session, in the order of the conversation.
SELECT id, data FROM message WHERE session_id = :id ORDER BY time_created, id
