"""Facts files as Soufflé reads and writes them."""

from upheld.factfiles.formats import Format
from upheld.factfiles.reading import read_facts
from upheld.factfiles.writing import Output, facts_text, stdout_text, write_all, write_facts

__all__ = ["Format", "Output", "facts_text", "read_facts", "stdout_text", "write_all", "write_facts"]
