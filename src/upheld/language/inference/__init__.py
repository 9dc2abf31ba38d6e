"""The types of columns and variables: declared, inferred, and subtypes."""
