-- How long models took, for limits on time beside those on requests and tokens.
ALTER TABLE budget ADD COLUMN millis BIGINT NOT NULL DEFAULT 0;

-- How often a job failed since it last succeeded, whatever was asked for meanwhile.
ALTER TABLE jobs ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;

-- When learning last began in the background of a session, so that it does so once in a while for all processes.
CREATE TABLE starts (
  root      TEXT PRIMARY KEY, -- the home
  started_s BIGINT NOT NULL   -- epoch seconds
);
