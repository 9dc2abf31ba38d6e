"""Small strata of `ranked`, many in one call of a kernel."""
