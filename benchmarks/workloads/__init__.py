"""Rules and facts to measure with, made from fixed seeds."""
