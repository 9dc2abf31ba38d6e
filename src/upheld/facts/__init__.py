"""Facts in and out: relations, changes, columns, facts files, frames, RDF files and update files. No engine."""
