"""`placement-status preflight`: everything that can be checked before a rollout.

Each module checks one area. A function that reads facts and a pure function that judges them are
separate, so that unit tests call the second one with literals. `checks.py` lists all checks in the
order of the report, `runner.py` executes them, and `render.py` formats the report.
"""
