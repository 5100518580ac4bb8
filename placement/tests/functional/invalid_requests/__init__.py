"""Generates valid and invalid requests, and checks the form of the responses."""
