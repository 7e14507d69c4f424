"""Projects: which one a folder, a session or a lesson belongs to."""
