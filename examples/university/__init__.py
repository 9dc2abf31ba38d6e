"""A made-up university of any size: its facts, its rules, and the whole story on Spark."""
