"""Sample sessions for the demo: three short stories, written for this purpose, in the ledger's own format."""
