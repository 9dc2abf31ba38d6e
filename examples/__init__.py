"""Programs over made-up data that show Upheld at work."""
