"""Every write of allocations.

The modules, in the order of the data flow:

* `model`: the data: claims, demands, and `Ground`, the facts that decide
* `statements`: all SQL of this package
* `owner`, `consumer`: rows of projects, users, consumer types and consumers
* `lock_and_read`: lock the rows in the global order, and read the facts into a `Ground`
* `judge`: pure decisions: generations, amounts, what a reshape leaves
* `settle`: write what `judge` accepted
* `replace`, `reshape`, `delete`: the public functions, one transaction each
"""
