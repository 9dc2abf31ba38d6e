"""Tables beside the printed numbers, figures, claims with verdicts, and the page of findings."""
