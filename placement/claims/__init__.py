"""All writes of allocations.

A *claim* is the request to replace all allocations of one consumer. A transaction that writes
claims has three steps: lock and read rows, accept or reject the claims, and write the changes.

The modules, in the order of the data flow:

* `model`: data classes, such as `Claim`, `Demand` (one requested allocation), and `Ground` (the
  claims of a request, and the stored data against which they are checked)
* `statements`: the SQL statements of this package
* `owner`, `consumer`: the rows of projects, users, consumer types and consumers
* `owner_memory`: the projects, users and consumer types that this process has seen in the database
* `lock_and_read`: lock rows in the lock order of this service, and read stored data into a `Ground`
* `judge`: accept or reject claims by their generations and amounts
* `reshape_judge`: plan the inventory changes of a reshape, and accept or reject them
* `settle`: write the changes that `judge` accepted
* `new_consumer`: all three steps for most claims, with fewer round trips
* `replace`, `reshape`, `delete`: the public functions, each of which executes one transaction
"""
