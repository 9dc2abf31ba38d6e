"""HTML of what notebooks and reports show, made without any package."""
