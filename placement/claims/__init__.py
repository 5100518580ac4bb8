"""All writes of allocations.

A *claim* is the request to replace all allocations of one consumer. A transaction that writes
claims has three steps: lock and read rows, accept or reject the claims, and write the changes.

The modules, in the order of the data flow:

* `claim`: data classes, such as `Claim`, `Demand` (one requested allocation), and `LockedClaims`
  (the claims of a request, and the stored data against which they are checked)
* `statements`: the SQL statements of this package
* `consumer_rows`: the rows of consumers, projects, users and consumer types, and which of them this
  process has seen in the database
* `lock_and_read`: lock rows in the lock order of this service, and read stored data into
  `LockedClaims`
* `judge`: accept or reject claims by their generations and amounts, and plan a reshape
* `write`: the public functions, each of which executes one transaction; it writes the changes of
  accepted claims, and writes most claims with fewer round trips
"""
