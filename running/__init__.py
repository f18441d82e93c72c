"""Running: what is needed to run and test the product on one machine without Docker.

In: the tools of the machine, `fleet.yml`, the Procfile.
Out: Prometheus, Alertmanager and our own processes, started, ready, and stopped without a trace.
"""
