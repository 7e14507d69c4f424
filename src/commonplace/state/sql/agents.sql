-- name: agents.put
-- Store that an agent was started, opened again or closed.
INSERT INTO spawn_edges (home, child_id, parent_id, is_open, started_s)
VALUES (:home, :child_id, :parent_id, :is_open, :now)
ON CONFLICT (home, child_id) DO UPDATE SET is_open = excluded.is_open

-- name: agents.open_children
-- The agents that a thread started and that nobody closed, oldest first.
SELECT child_id FROM spawn_edges WHERE home = :home AND parent_id = :parent_id AND is_open = 1 ORDER BY child_id

-- name: agents.drop
-- Forget an agent whose thread was deleted, and that it started others.
DELETE FROM spawn_edges WHERE home = :home AND (child_id = :thread_id OR parent_id = :thread_id)
