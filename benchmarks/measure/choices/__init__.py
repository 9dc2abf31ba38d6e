"""The choices of `adaptive`: its constants, and programs that judge them."""
