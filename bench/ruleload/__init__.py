"""A large fleet as Prometheus sees it, for measuring rules: what the exporter would show, without any engine behind."""
