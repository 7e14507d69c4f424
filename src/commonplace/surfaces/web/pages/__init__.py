"""The pages: each reads a request, calls an operation of the core, and renders what it returned."""
