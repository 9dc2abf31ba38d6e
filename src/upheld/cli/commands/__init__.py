"""The commands, one module each: `add_arguments`, `execute` and the `EXAMPLES` of its help."""
