-- What each session tells about the project of its folder, so that projects are decided from all sessions together.
CREATE TABLE folder_evidence (
  thread_id TEXT PRIMARY KEY, -- the session
  evidence  TEXT NOT NULL     -- JSON (`projects.evidence`)
);

-- The projects of a home, as they were last decided.
CREATE TABLE projects (
  home    TEXT NOT NULL, -- whose
  project TEXT NOT NULL, -- its identity: an address, a first commit or a folder
  why     TEXT NOT NULL, -- JSON: sentences that say why its folders are one project
  PRIMARY KEY (home, project)
);

-- The folders and addresses by which each project is known.
CREATE TABLE project_names (
  home    TEXT NOT NULL, -- whose
  name    TEXT NOT NULL, -- a folder, or the identity of a repository
  noted   TEXT NOT NULL, -- of a folder: the identity that sessions noted there; empty if none, and for an address
  project TEXT NOT NULL, -- the project that it means
  PRIMARY KEY (home, name, noted)
);
