"""The command-line programs `placement-manage` and `placement-status`."""
