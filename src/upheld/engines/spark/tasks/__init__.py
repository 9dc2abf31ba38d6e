"""Tasks that follow a driver: the commands, the exchanges between members, and where tasks run."""
