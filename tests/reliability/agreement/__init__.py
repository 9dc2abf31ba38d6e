"""Goals of agreement: with an oracle, with other ways to write a program, with a model of the API."""
