"""The Spark side of Upheld: the Java it runs on, and its sessions."""
