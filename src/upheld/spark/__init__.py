"""Spark itself: sessions, the Java it runs on, files wherever Spark finds them, and its errors in our words."""
