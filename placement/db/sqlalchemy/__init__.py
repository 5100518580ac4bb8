"""The database tables and their migrations."""
