"""The metrics of the capacity of the cloud, for `placement-manage exporter`.

`reading` reads the whole cloud with a constant number of statements, `exposition` renders it with
prometheus_client, `exporter` shares the result between requests, and `server` serves it over HTTP.
"""
