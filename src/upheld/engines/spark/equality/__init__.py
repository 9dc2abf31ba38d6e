"""Classes of equal constants and of equivalences, whole in every task."""
