"""Reports of a materialisation about itself: profile, memory, plans, progress and log."""
