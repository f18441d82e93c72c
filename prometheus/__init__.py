"""Prometheus: the second stage, after the exporter and before alerts.

In: the catalogue and a `Fleet`.
Out: `prometheus.yml` and the recording rules, as text; and `Recorded` objects, by which alerts and boards name them.
"""
