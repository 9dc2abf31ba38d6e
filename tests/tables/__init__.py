"""Tables that are kept up to date on disk."""
