"""Small rounds of equality by rewriting, many in one call of a kernel."""
