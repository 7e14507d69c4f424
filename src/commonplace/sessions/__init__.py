"""Operations on threads: list, show, fork, roll back, compact, archive, delete, import."""
