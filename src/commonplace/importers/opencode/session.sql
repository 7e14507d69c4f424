-- One session, in the form that an export has it, and the folder of its project.
SELECT
  json_object(
    'id', s.id, 'parentID', s.parent_id, 'directory', s.directory, 'title', s.title, 'version', s.version,
    'time', json_object('created', s.time_created), 'revert', json(s.revert)
  ) AS info,
  coalesce((SELECT worktree FROM project WHERE id = s.project_id), '') AS worktree
FROM session AS s WHERE s.id = :id
