"""Small rounds of `ranked`, many in one call: plans as bytecode, and the kernel that interprets it."""
