"""Dashboards: recorded series and alerts in, Grafana boards out.

In: the objects of `exporter.catalogue`, `prometheus` and `alerts`. Out: `dashboards/generated/*.json`, which Grafana's
file provisioning reads as it is. One file in `boards/` per board, found by being there.
"""
