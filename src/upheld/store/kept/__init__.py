"""Tables kept up to date on disk: the facts of a relation as Parquet files, and a manifest that names them."""
