-- name: evidence.put
-- Keep what a session tells about the project of its folder.
INSERT INTO folder_evidence (thread_id, evidence) VALUES (:thread_id, :evidence)
ON CONFLICT (thread_id) DO UPDATE SET evidence = excluded.evidence

-- name: evidence.delete
-- Forget what a session tells about its project.
DELETE FROM folder_evidence WHERE thread_id = :thread_id

-- name: projects.clear
-- Forget the projects of a home, before they are stored anew.
DELETE FROM projects WHERE home = :home

-- name: projects.put
-- One project of a home.
INSERT INTO projects (home, project, why) VALUES (:home, :project, :why)

-- name: projects.all
-- The projects of a home.
SELECT project, why FROM projects WHERE home = :home ORDER BY project

-- name: project_names.clear
-- Forget by which names projects are known.
DELETE FROM project_names WHERE home = :home

-- name: project_names.put
-- A name of a project.
INSERT INTO project_names (home, name, noted, project) VALUES (:home, :name, :noted, :project)

-- name: project_names.all
-- Every name of every project of a home.
SELECT name, noted, project FROM project_names WHERE home = :home ORDER BY name, noted
