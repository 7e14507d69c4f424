"""The agent: a session and its turns, and the tools that a model calls in them."""
