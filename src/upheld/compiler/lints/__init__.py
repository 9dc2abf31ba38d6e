"""Warnings about valid programs that are probably mistakes."""
