"""Files wherever Spark finds them, and its errors in our words."""
