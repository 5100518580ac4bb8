"""Tests that start the servers with the files in etc/."""
