"""Kernels generated for the rules of a program."""
