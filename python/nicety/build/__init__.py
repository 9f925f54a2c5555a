"""Programs for cards: C sources, the compiler that makes ELF files of them, and the cache of these ELF files."""
