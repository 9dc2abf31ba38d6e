"""Goals of robust input: damaged files, fuzzed programs, rules that never end."""
