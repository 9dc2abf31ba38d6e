"""Classes of equal constants, and of equivalences."""
