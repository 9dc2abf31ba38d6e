"""Join plans: how they are made, ordered, found and shown."""
