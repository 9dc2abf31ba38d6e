"""Running plans: the ways to match the body of a rule, and where its heads go."""
