"""`placement-status preflight`: everything that can be checked before a rollout.

A check is a generator with the decorator `model.check`. `report.py` executes the checks and formats
their results. The reference of the command contains the docstrings of the checks.
"""

# The checks are executed and reported in the order of these modules.
from placement.admin.preflight import configuration, database, settings, identity  # noqa: F401, I001
