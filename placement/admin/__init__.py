"""What operators need beyond the API. The commands in `placement.cmd` call these packages."""
