"""Records the examples of the documentation, and tests that they are complete."""
