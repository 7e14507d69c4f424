-- How likely an entry lasts; candidates are no part of the memory's files, and nobody is told of them.
ALTER TABLE entries ADD COLUMN is_candidate BIGINT NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN confidence DOUBLE PRECISION NOT NULL DEFAULT 1;

-- Every extraction is consolidated, and none ages out.
DROP INDEX outputs_ranked;
DROP INDEX outputs_stale;

-- What the program read by itself is read anew: sessions are judged otherwise than before.
-- What a model or another program told stays.
UPDATE jobs SET last_success_watermark = NULL, retry_remaining = 3
WHERE kind = 'memory_stage1' AND status = 'done' AND job_key NOT IN (
  SELECT thread_id FROM outputs WHERE lessons IS NULL OR lessons LIKE '%"reader":%'
);
UPDATE threads SET learned_s = 0 WHERE thread_id IN (
  SELECT job_key FROM jobs WHERE kind = 'memory_stage1' AND status = 'done' AND last_success_watermark IS NULL
);
UPDATE outputs SET source_updated_at = source_updated_at - 1
WHERE lessons IS NOT NULL AND lessons NOT LIKE '%"reader":%';
