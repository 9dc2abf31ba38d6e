"""Running cells in processes of their own: samples, seconds, statistics, and the search for break-even points."""
