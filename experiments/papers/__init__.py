"""The measurements of each paper: cells, how they are measured, and the tables that they give."""
