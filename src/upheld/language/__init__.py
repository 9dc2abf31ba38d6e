"""Programs: from text to the core form that engines evaluate."""

from upheld.language import core_text as core_text  # prints rules
from upheld.language.syntax import printer as printer  # prints programs
