"""Tests of the service with real web servers."""
