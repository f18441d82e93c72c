"""Alerts: the third stage, after Prometheus and before boards and runbooks.

In: indicators and recorded series, a `Fleet`.
Out: alerting rules, burn-rate rules and Alertmanager's configuration, as text; and `ALERTS`, which boards, runbooks and
drills read.
"""
