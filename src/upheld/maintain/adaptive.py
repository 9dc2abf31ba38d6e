"""The default: ranked support, with a budgeted search and the choice to start again (not yet)."""

from upheld.maintain.ranked import ranked as adaptive  # noqa: F401
