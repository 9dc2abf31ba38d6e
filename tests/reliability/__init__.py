"""The reliability programme: attacks on the whole of Upheld, each with a goal of zero failures."""
