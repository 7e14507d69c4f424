"""Other agents' sessions, read exactly and written as ledgers of our own. `converter` defines the shape of a
converter.
"""
