"""Facts files as Soufflé reads and writes them."""

from upheld.facts.files.formats import Format
from upheld.facts.files.inputs import input_rows
from upheld.facts.files.reading import Reader, read_bytes, read_facts, rows_in
from upheld.facts.files.writing import Output, Writer, facts_text, stdout_text, write_all, write_facts

__all__ = [
    "Format",
    "Output",
    "Reader",
    "Writer",
    "facts_text",
    "input_rows",
    "read_bytes",
    "read_facts",
    "rows_in",
    "stdout_text",
    "write_all",
    "write_facts",
]
