"""All writes of allocations.

A *claim* is the request to replace all allocations of one consumer. A transaction that writes
claims has three steps: lock and read rows, accept or reject the claims, and write the changes.

The modules, in the order of the data flow:

* `claim`: data classes, such as `Claim`, `Demand` (one requested allocation), and `LockedClaims`
  (the claims of a request, and the stored data against which they are checked)
* `statements`: the SQL statements of this package
* `rows`: lock consumers, and read, insert and delete the rows of claims
* `judge`: accept or reject claims by their generations and amounts, and plan a reshape
* `write`: the public functions, each of which executes one transaction with these steps
"""
