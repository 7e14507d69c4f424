-- Earlier versions stored first words, titles and remotes with the secrets in them: they go, and each file is read anew.
UPDATE threads SET preview = '', title = NULL, git_url = NULL, size = 0, mtime_ns = 0, is_complete = 0;
