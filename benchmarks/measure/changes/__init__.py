"""Changes of one kind each, beside a large materialisation."""
