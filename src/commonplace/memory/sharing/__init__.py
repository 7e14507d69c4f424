"""One memory of several homes, on several hosts: its files and people's decisions, published in the shared database."""
