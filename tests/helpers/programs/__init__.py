"""Random programs, expressions and syntax trees."""
