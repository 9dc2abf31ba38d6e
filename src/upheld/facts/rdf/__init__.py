"""Files of triples and quads as facts of `triple` and `quad`, and back."""
