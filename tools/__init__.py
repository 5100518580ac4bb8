"""Programs for the development and evaluation of Placement; they are not installed."""
