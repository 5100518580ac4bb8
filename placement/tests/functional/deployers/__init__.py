"""Runs Placement as deployment tools configure it; only if PLACEMENT_TEST_DEPLOYERS is set."""
