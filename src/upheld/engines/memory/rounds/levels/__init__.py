"""Small rounds of `counting`, many in one call of a kernel."""
