"""Facts files as Soufflé reads and writes them."""

from upheld.factfiles.formats import Format
from upheld.factfiles.reading import Reader, read_bytes, read_facts, rows_in
from upheld.factfiles.writing import Output, Writer, facts_text, stdout_text, write_all, write_facts

__all__ = [
    "Format",
    "Output",
    "Reader",
    "Writer",
    "facts_text",
    "read_bytes",
    "read_facts",
    "rows_in",
    "stdout_text",
    "write_all",
    "write_facts",
]
