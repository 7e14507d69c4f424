"""What a release needs besides the code: the documentation as a site, the man page, and the script for it all."""
