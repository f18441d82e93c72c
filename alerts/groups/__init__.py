"""Groups: one file per group of alerts, found by being there. Each defines `GROUP`."""
