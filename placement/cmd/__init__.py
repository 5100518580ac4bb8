"""The commands `placement-manage` and `placement-status`."""
