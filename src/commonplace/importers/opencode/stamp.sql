-- How much a session holds, and when any of it was last written (in milliseconds).
SELECT
  (SELECT count(*) FROM message WHERE session_id = s.id) + (SELECT count(*) FROM part WHERE session_id = s.id) AS records,
  max(
    s.time_updated,
    coalesce((SELECT max(time_updated) FROM message WHERE session_id = s.id), 0),
    coalesce((SELECT max(time_updated) FROM part WHERE session_id = s.id), 0)
  ) AS updated
FROM session AS s WHERE s.id = :id
