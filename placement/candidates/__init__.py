"""GET /allocation_candidates.

The contributor documentation (`candidates.rst`) lists the modules in the order in which a request
runs. `model` defines the data types, and the terms of this package: anchor, slot, option, binding.
"""
