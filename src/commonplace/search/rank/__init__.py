"""Ranked search: texts to terms, terms to postings, postings to scores. Pure; nothing here touches disk or database."""
