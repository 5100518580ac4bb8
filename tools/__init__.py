"""Programs for those who work on Placement, or want to try it. None is installed."""
