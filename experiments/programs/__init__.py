"""The programs of the experiments: rules of our own, and published rule sets where a folder has them."""
