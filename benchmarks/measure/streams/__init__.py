"""Measurements of streams of small updates."""
