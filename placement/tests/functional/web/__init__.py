"""The service behind real web servers."""
