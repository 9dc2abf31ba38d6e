"""Sets of facts as bits in the flags of rows, and what a transaction has changed of them."""
