"""A stand-in for systemd-python, which pip cannot install without the headers of systemd."""
