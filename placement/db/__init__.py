"""The database: engine, transactions, retries, and SQL expressions."""
