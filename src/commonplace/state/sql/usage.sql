-- name: usage.output_retrieved
-- A search or a tool gave out what a thread taught.
UPDATE outputs SET retrieved = retrieved + :n, last_retrieved = :now,
  fresh_at = CASE WHEN fresh_at > :now THEN fresh_at ELSE :now END WHERE thread_id = :id

-- name: usage.output_injected
-- A prompt carried it; that is not a sign of use, so it does not make it fresh.
UPDATE outputs SET injected = injected + :n, last_injected = :now WHERE thread_id = :id

-- name: usage.output_cited
-- An answer named it.
UPDATE outputs SET cited = cited + :n, last_cited = :now,
  fresh_at = CASE WHEN fresh_at > :now THEN fresh_at ELSE :now END WHERE thread_id = :id

-- name: usage.entry_retrieved
-- A search or a tool gave out an entry.
INSERT INTO entry_usage (entry_id, retrieved, last_retrieved) VALUES (:id, :n, :now)
ON CONFLICT (entry_id) DO UPDATE SET retrieved = entry_usage.retrieved + :n, last_retrieved = :now

-- name: usage.entry_injected
-- A prompt carried an entry.
INSERT INTO entry_usage (entry_id, injected, last_injected) VALUES (:id, :n, :now)
ON CONFLICT (entry_id) DO UPDATE SET injected = entry_usage.injected + :n, last_injected = :now

-- name: usage.entry_cited
-- An answer named an entry.
INSERT INTO entry_usage (entry_id, cited, last_cited) VALUES (:id, :n, :now)
ON CONFLICT (entry_id) DO UPDATE SET cited = entry_usage.cited + :n, last_cited = :now

-- name: usage.entry
-- How often an entry was of use.
SELECT * FROM entry_usage WHERE entry_id = :entry_id

-- name: usage.forget_entry
-- Forget how often an entry was of use.
DELETE FROM entry_usage WHERE entry_id = :entry_id

-- name: budget.spend
-- Note what a model cost.
INSERT INTO budget (day, kind, requests, tokens, millis) VALUES (:day, :kind, :requests, :tokens, :millis)
ON CONFLICT (day, kind) DO UPDATE SET requests = budget.requests + :requests, tokens = budget.tokens + :tokens,
  millis = budget.millis + :millis

-- name: budget.spent
-- What was spent on a kind of work on one day.
SELECT requests, tokens, millis FROM budget WHERE day = :day AND kind = :kind

-- name: budget.day
-- What was spent on one day, by kind of work.
SELECT kind, requests, tokens, millis FROM budget WHERE day = :day ORDER BY kind

-- name: usage.told_last
-- Entries that prompts carried last, the newest first.
SELECT entry_id, retrieved, injected, cited, last_retrieved, last_injected, last_cited FROM entry_usage
WHERE last_injected IS NOT NULL ORDER BY last_injected DESC, entry_id LIMIT :limit

-- name: usage.asked_last
-- Entries that searches gave out or answers named last, the newest first.
SELECT entry_id, retrieved, injected, cited, last_retrieved, last_injected, last_cited FROM entry_usage
WHERE last_retrieved IS NOT NULL OR last_cited IS NOT NULL
ORDER BY CASE WHEN coalesce(last_cited, 0) > coalesce(last_retrieved, 0) THEN last_cited ELSE last_retrieved END DESC,
  entry_id LIMIT :limit

-- name: budget.since
-- What was spent since a day, by day and kind of work.
SELECT day, kind, requests, tokens, millis FROM budget WHERE day >= :day ORDER BY day, kind
