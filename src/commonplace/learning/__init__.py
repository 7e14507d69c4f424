"""The write side of memory: sessions become lessons, lessons become the memory's files."""
