"""Every write of allocations.

The modules, in the order of the data flow:

* `model`: the data: claims, demands, and the ground that a request is judged on
* `statements`: all SQL of this package
* `owner`, `consumer`: rows of projects, users, consumer types and consumers
* `ground`: lock the rows in the global order and read what the decision needs
* `judge`: pure decisions: generations, amounts, what a reshape leaves
* `settle`: write what `judge` accepted
* `replace`, `reshape`, `delete`: the public functions, one transaction each
"""
