"""Facts on disk: complete versions of all relations of a program, one of which is the last."""
