"""Bodies with variables of their own within a body: of aggregates, and of `AGGREGATE` and `EXISTS`."""
