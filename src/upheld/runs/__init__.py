"""Programs run as their directives ask: `run`, `apply` and `check`."""
