"""Access to the database: connections, transactions, retries and SQL expressions."""
