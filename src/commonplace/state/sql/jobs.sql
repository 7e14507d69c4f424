-- name: jobs.get
-- One job.
SELECT * FROM jobs WHERE kind = :kind AND job_key = :job_key

-- name: jobs.count_running
-- How many jobs of a kind are claimed with a live lease: one that ends after now, and within six hours (see `jobs.py`).
SELECT count(*) AS n FROM jobs WHERE kind = :kind AND status = 'running' AND lease_until > :now AND lease_until <= :now + 21600

-- name: jobs.running_on_host
-- Claims that processes of one host hold, so that the dead ones can be told.
SELECT kind, job_key, ownership_token, pid, process_start FROM jobs
WHERE status = 'running' AND lease_until > :now AND lease_until <= :now + 21600 AND host = :host

-- name: jobs.expire
-- End the lease of a claim whose process is dead.
UPDATE jobs SET lease_until = :now WHERE kind = :kind AND job_key = :job_key AND ownership_token = :ownership_token

-- name: jobs.insert_claim
-- Claim a job that nobody ever worked on.
INSERT INTO jobs (kind, job_key, status, worker_id, host, pid, process_start, ownership_token, started_at, lease_until,
  retry_remaining, input_watermark, last_success_watermark)
VALUES (:kind, :job_key, 'running', :worker_id, :host, :pid, :process_start, :ownership_token, :now, :lease_until,
  :retry_remaining, :input_watermark, :last_success_watermark)
ON CONFLICT (kind, job_key) DO NOTHING

-- name: jobs.claim
-- Claim a job that has no live lease.
UPDATE jobs SET status = 'running', worker_id = :worker_id, host = :host, pid = :pid, process_start = :process_start,
  ownership_token = :ownership_token, started_at = :now, finished_at = NULL, lease_until = :lease_until, retry_at = NULL,
  retry_remaining = :retry_remaining, last_error = NULL, input_watermark = :input_watermark
WHERE kind = :kind AND job_key = :job_key AND NOT (status = 'running' AND coalesce(lease_until, 0) > :now AND lease_until <= :now + 21600)

-- name: jobs.heartbeat
-- Keep a claim for longer; an extraction whose lease ran out may have lost its place under the cap, so it is not revived.
UPDATE jobs SET lease_until = :lease_until
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :ownership_token
  AND (kind <> 'memory_stage1' OR (lease_until > :now AND lease_until <= :now + 21600))

-- name: jobs.release
-- Give a claim back as if it had not been made.
UPDATE jobs SET status = 'pending', lease_until = NULL, ownership_token = NULL, started_at = NULL
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :ownership_token

-- name: jobs.succeed
-- A claimed job is done; its success watermark never goes back.
UPDATE jobs SET status = 'done', finished_at = :now, lease_until = NULL, last_error = NULL, failures = 0,
  last_success_watermark = CASE
  WHEN coalesce(last_success_watermark, 0) > :watermark THEN last_success_watermark ELSE :watermark END
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :ownership_token

-- name: jobs.fail
-- A claimed job failed; it may be tried again after a while.
UPDATE jobs SET status = 'error', finished_at = :now, lease_until = NULL, retry_at = :retry_at,
  retry_remaining = CASE WHEN retry_remaining > 0 THEN retry_remaining - 1 ELSE 0 END, last_error = :last_error,
  failures = failures + 1
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :ownership_token

-- name: jobs.fail_unowned
-- The same for a running job that lost its token, when nobody else has it.
UPDATE jobs SET status = 'error', finished_at = :now, lease_until = NULL, retry_at = :retry_at,
  retry_remaining = CASE WHEN retry_remaining > 0 THEN retry_remaining - 1 ELSE 0 END, last_error = :last_error,
  failures = failures + 1
WHERE kind = :kind AND job_key = :job_key AND status = 'running'
  AND (ownership_token = :ownership_token OR ownership_token IS NULL)

-- name: jobs.enqueue
-- Ask for a consolidation; the watermark always grows, a running one is left to end.
INSERT INTO jobs (kind, job_key, status, retry_remaining, input_watermark, last_success_watermark)
VALUES (:kind, :job_key, 'pending', :retry_remaining, :watermark, 0)
ON CONFLICT (kind, job_key) DO UPDATE SET
  status = CASE WHEN jobs.status = 'running' THEN 'running' ELSE 'pending' END,
  retry_at = CASE WHEN jobs.status = 'running' THEN jobs.retry_at ELSE NULL END,
  retry_remaining = CASE WHEN jobs.retry_remaining > :retry_remaining THEN jobs.retry_remaining ELSE :retry_remaining END,
  input_watermark = CASE WHEN :watermark > coalesce(jobs.input_watermark, 0) THEN :watermark
    ELSE coalesce(jobs.input_watermark, 0) + 1 END

-- name: jobs.delete
-- Forget a job.
DELETE FROM jobs WHERE kind = :kind AND job_key = :job_key

-- name: jobs.clear
-- Forget every job of memory.
DELETE FROM jobs WHERE kind IN ('memory_stage1', 'memory_consolidate_global')

-- name: jobs.states
-- How many jobs of a kind are in which state.
SELECT kind, status, count(*) AS n FROM jobs GROUP BY kind, status

-- name: jobs.failed
-- Extractions that failed last, newest first.
SELECT job_key, last_error, retry_at, retry_remaining FROM jobs
WHERE kind = 'memory_stage1' AND status = 'error'
ORDER BY finished_at DESC, job_key LIMIT :limit

-- name: jobs.listed
-- Jobs that run, wait or failed, those that run first.
SELECT kind, job_key, status, worker_id, host, pid, started_at, finished_at, lease_until, retry_at, retry_remaining,
  last_error, failures FROM jobs WHERE status <> 'done'
ORDER BY CASE status WHEN 'running' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, finished_at DESC, kind, job_key LIMIT :limit

-- name: jobs.leases
-- Claims with a live lease, and who holds them.
SELECT kind, job_key, worker_id, host, pid, lease_until FROM jobs
WHERE status = 'running' AND lease_until > :now AND lease_until <= :now + 21600
ORDER BY kind, job_key

-- name: starts.begin
-- Learning begins in the background, unless it did so a short while ago.
INSERT INTO starts (root, started_s) VALUES (:root, :now)
ON CONFLICT (root) DO UPDATE SET started_s = :now WHERE starts.started_s <= :before OR starts.started_s > :now

-- name: starts.get
-- When learning last began in the background.
SELECT started_s FROM starts WHERE root = :root

-- name: extractions.candidates
-- Threads that need to be extracted and may be, newest first; fresh ones and old ones are left out here, not afterwards.
-- filter backoff: AND (jobs.job_key IS NULL OR updated_s > coalesce(jobs.input_watermark, -1) OR coalesce(jobs.retry_at, 0) <= :now OR jobs.finished_at > :now)
-- filter not_current: AND thread_id <> :current
-- filter after: AND (updated_s, threads.thread_id) < (:after_s, :after_id)
SELECT threads.thread_id, threads.path, threads.source, threads.cwd, threads.project, threads.updated_s
FROM threads LEFT JOIN jobs ON jobs.kind = 'memory_stage1' AND jobs.job_key = threads.thread_id
WHERE home = :home AND updated_s > learned_s AND is_current = 1 AND is_archived = 0 AND is_root = 1
  AND memory_mode = 'enabled' AND preview <> '' AND updated_s >= :oldest AND updated_s <= :newest
  AND (jobs.job_key IS NULL OR jobs.status <> 'running' OR coalesce(jobs.lease_until, 0) <= :now OR jobs.lease_until > :now + 21600)
  AND (jobs.job_key IS NULL OR updated_s > coalesce(jobs.input_watermark, -1) OR jobs.retry_remaining > 0)
  {filters}
ORDER BY updated_s DESC, threads.thread_id DESC
LIMIT :limit {skip_locked}
